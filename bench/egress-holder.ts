import { once } from 'node:events';
import { connect } from 'node:net';
import { egressConfig } from '../src/egress/config.ts';
import { runEgress } from '../src/egress/egress.ts';
import { createLogger } from '../src/telemetry/log.ts';
import { createSecretRedactor } from '../src/telemetry/secret-redactor.ts';

/** Runs a replica of the egress proxy until the parent process disconnects. Every name has a public address, which leads to one local port. */
const [folder = '', port = ''] = process.argv.slice(2);
const stop = new AbortController();
const log = createLogger({ level: 'error', destination: process.stderr, secrets: createSecretRedactor() });
const config = egressConfig({
  listen: { host: '127.0.0.1', port: 0 },
  health: { host: '127.0.0.1', port: 0 },
  tls: { certificate: `${folder}/proxy-tls.crt`, key: `${folder}/proxy-tls.key` },
  gateway: { endpoints: folder, tokenFile: `${folder}/token` },
});
const network = {
  resolve: async () => ['93.184.215.14'],
  connect: async () => {
    const socket = connect({ host: '127.0.0.1', port: Number(port) });
    await once(socket, 'connect');
    return socket;
  },
};
process.on('message', () => {
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  process.send?.({ rss: process.memoryUsage.rss(), cpuMs: (user + system) / 1_000 });
});
process.once('disconnect', () => stop.abort());
await runEgress(config, {
  createLog: () => log,
  signal: stop.signal,
  network,
  listening: (addresses) => process.send?.(addresses),
});
