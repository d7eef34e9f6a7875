"""django-oauth-toolkit as an authorization server on loopback.

The first line of stdin is a JSON object: the `port`, `folder` for the database, `life` for the lifetime of a token in
seconds, and `clients` with id and secret. The server ends when stdin does, so that no server remains after a test.
"""

import json
import os
import secrets
import sys
import threading

import django
from django.conf import settings

given = json.loads(sys.stdin.readline())
folder = given["folder"]

settings.configure(
    SECRET_KEY=secrets.token_hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    # It sends the length of a response, without which Django's server closes the connection.
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.path.join(folder, "database.sqlite3"),
            # Each thread keeps its connection, and many wait while one writes.
            "CONN_MAX_AGE": None,
            "OPTIONS": {"timeout": 20},
        }
    },
    LOGGING_CONFIG=None,
    OAUTH2_PROVIDER={
        "ACCESS_TOKEN_EXPIRE_SECONDS": given["life"],
        "SCOPES": {"read": "Reading", "introspection": "Introspection"},
        "DEFAULT_SCOPES": ["read"],
    },
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.servers.basehttp import (  # noqa: E402
    ThreadedWSGIServer,
    WSGIRequestHandler,
    get_internal_wsgi_application,
)
from django.urls import include, path  # noqa: E402
from oauth2_provider.models import get_application_model  # noqa: E402


class Server(ThreadedWSGIServer):
    # The default of ten is too small for a burst of first connections.
    request_queue_size = 128


class Handler(WSGIRequestHandler):
    # Headers and body are written separately: on a kept-alive connection, the body would wait for the client's ACK.
    disable_nagle_algorithm = True


urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]

call_command("migrate", verbosity=0)
Application = get_application_model()
for client in given["clients"]:
    Application.objects.create(
        **client,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )

server = Server(("127.0.0.1", given["port"]), Handler)
server.set_app(get_internal_wsgi_application())
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
