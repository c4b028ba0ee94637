import { POD_PATHS, PORTS } from '../../src/api/cluster.ts';
import type { ApiObject } from '../cluster/api-client.ts';
import type { NodeCluster } from '../cluster/node.ts';
import { CONTAINERD } from '../cluster/node/config.ts';
import type { PodObject } from './scene.ts';

const NODE = '/usr/local/bin/node';
/** `call({method, path, said, headers})` → `{status, text}`, for scripts of the agent container: what its files say of gateway and token. */
const CALL = `
  import { readFileSync } from 'node:fs';
  import { request } from 'node:https';
  const read = (path) => readFileSync(path, 'utf8').trim();
  const door = (name) => read('${POD_PATHS.doors}/' + name);
  const call = ({ method, path, said, headers }) => new Promise((resolve, reject) => {
    const own = { authorization: 'Bearer ' + read('${POD_PATHS.gatewayToken}'), 'content-type': 'application/json' };
    const key = { 'idempotency-key': 'test-' + process.hrtime.bigint() };
    const options = { method, ca: door('ca.crt'), servername: door('gateway-name'), headers: { ...own, ...key, ...headers } };
    const calling = request(new URL(path, door('gateway')), options, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk)).on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }));
    });
    calling.on('error', reject).end(said);
  });
`;
const LAUNCHER = ['/usr/local/bin/launcher', 'run'];
type Container = 'agent' | 'sandbox';

/**
 * Runs a script in a container of a pod, with the user, the rights and the filter the runtime gave that container; `confined` puts it
 * under the launcher as well, as everything in the sandbox is. The fence keeps everybody else out: this comes from the node.
 * Gives the JSON the script writes.
 */
export async function inside(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  container: Container,
  script: string,
  { confined = false } = {},
): Promise<unknown> {
  const program = [...(confined ? LAUNCHER : []), NODE, '--input-type=module', '-e', script];
  const id = containerId(pod, container);
  const exec = ['tasks', 'exec', '--exec-id', `test-${process.hrtime.bigint()}`, id, ...program];
  return JSON.parse(await node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', ...exec)) as unknown;
}

export interface PodCall {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  /** Another one than the pod's own. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PodAnswer {
  readonly status: number;
  /** The code of the refusal, when it is one. */
  readonly code: string;
  readonly body: ApiObject;
}

/** Asks the gateway as the pod would, with its token unless another one is given. */
export async function callGateway(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  { method = 'POST', path, body, token, headers = {} }: PodCall,
): Promise<PodAnswer> {
  const given = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const said = body === undefined ? '' : JSON.stringify(body);
  const script = `${CALL}
    const { status, text } = await call(${JSON.stringify({ method, path, said, headers: { ...given, ...headers } })});
    console.log(JSON.stringify({ status, body: text === '' ? {} : JSON.parse(text) }));
    process.exit(0);
  `;
  const answer = (await inside(node, pod, 'agent', script)) as Pick<PodAnswer, 'status' | 'body'>;
  const { code = '' } = (answer.body['error'] ?? {}) as { code?: string };
  return { ...answer, code };
}

/** A script for the agent container that asks the same again and again, and writes when it was answered how: `{at, status}[]`. */
export function keepAsking(path: string, body: object, milliseconds: number): string {
  const asked = JSON.stringify({ method: 'POST', path, said: JSON.stringify(body), headers: {} });
  return `${CALL}
    const answers = [];
    const end = Date.now() + ${milliseconds};
    while (Date.now() < end) {
      const { status } = await call(${asked});
      answers.push({ at: Date.now(), status });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    console.log(JSON.stringify(answers));
    process.exit(0);
  `;
}

/** A script that tells which of the addresses take a connection: `{[address]: boolean}`. What is dropped gives no answer at all. */
export function reach(addresses: readonly string[]): string {
  return `
    import { connect } from 'node:net';
    const open = (address) => new Promise((resolve) => {
      const [host, port] = address.split(':');
      const socket = connect(Number(port), host);
      const end = (reached) => resolve(socket.destroy() && [address, reached]);
      socket.setTimeout(1_500, () => end(false)).on('connect', () => end(true)).on('error', () => end(false));
    });
    console.log(JSON.stringify(Object.fromEntries(await Promise.all(${JSON.stringify(addresses)}.map(open)))));
  `;
}

/** The process a container began with, as the node counts. */
export async function processOf(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  container: Container,
): Promise<string> {
  const tasks = await node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'tasks', 'list');
  const rows = tasks.split('\n').map((line) => line.split(/\s+/));
  const [, pid] = rows.find(([id]) => id === containerId(pod, container)) ?? [];
  if (pid === undefined) throw new Error(`the container ${container} of ${pod.metadata.name} does not run`);
  return pid;
}

/** Stops the agent container's own process where it stands and breaks its connections, so that what comes next comes to the test. */
export async function takeOver(node: Pick<NodeCluster, 'onNode'>, pod: PodObject): Promise<void> {
  const pid = await processOf(node, pod, 'agent');
  await node.onNode('kill', '-STOP', pid);
  await node.onNode('nsenter', '--net', '--target', pid, 'ss', '--kill', 'dport', '=', `:${PORTS.gateway}`);
}

function containerId({ status, metadata }: PodObject, container: Container): string {
  const found = status.containerStatuses?.find(({ name }) => name === container)?.containerID;
  if (found === undefined) throw new Error(`${metadata.name} has no container ${container} yet`);
  return found.replace('containerd://', '');
}
