/** `node:http` and undici send no `User-Agent`, and some firewalls and gateways refuse requests without one. */
export const userAgent = "store-api"
