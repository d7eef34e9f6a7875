# The contract as a worker, on a port of loopback that the system chooses.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "contract", worker = .contract),
    # The laboratory is on this machine, which a worker may not reach by default.
    (name = "internet", network = (allow = ["private"], tlsOptions = (trustBrowserCas = true)))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "contract")]
);

const contract :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-11-17"
);
