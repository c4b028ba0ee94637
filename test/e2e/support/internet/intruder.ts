/**
 * What an attacker does who controls the agent container: it uses the egress proxy with the token of the pod and the delivery token of
 * its message, without any check of the pod. `intruderScript` bundles it into one text for `runInPod`.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectTls } from 'node:tls';
import { POD_PATHS } from '../../../../src/api/cluster.ts';
import { ProxyClient } from '../../../../src/egress/proxy/proxy-client.testing.ts';

/** Request lines to send, or a path of the host to read from for as long as the proxy permits. */
export type IntruderOrder = { deliveryToken: string } & ({ lines: readonly string[] } | { hold: string });

const HOST = 'api.example.com';
const order = Reflect.get(globalThis, 'order') as IntruderOrder;
const read = (path: string): string => readFileSync(path, 'utf8').trim();
const proxy = new URL(read(`${POD_PATHS.endpoints}/egress`));
const head = `Proxy-Authorization: Bearer ${read(POD_PATHS.egressToken)}\r\ntemper-delivery-token: ${order.deliveryToken}\r\n`;
const client = new ProxyClient();
Object.assign(client, { host: proxy.hostname, port: Number(proxy.port) });

/** The status of the response and the code in its body. */
async function answerTo(line: string): Promise<string> {
  const answer = await client.exchange(`${line} HTTP/1.1\r\nHost: ${HOST}\r\n${head}\r\n`);
  return [/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1], /TEMPER_[A-Z_]+/.exec(answer)?.[0]].filter(Boolean).join(' ');
}

async function hold(path: string): Promise<number> {
  const socket = await client.tunnel(`${HOST}:443`, head);
  const tls = connectTls({ socket, servername: HOST, rejectUnauthorized: false });
  tls.on('error', () => undefined).write(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  let bytes = 0;
  tls.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(tls, 'close');
  return bytes;
}

async function answersTo(lines: readonly string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const line of lines) answers.push(await answerTo(line));
  return answers;
}

console.log(JSON.stringify('lines' in order ? await answersTo(order.lines) : await hold(order.hold)));
process.exit(0);
