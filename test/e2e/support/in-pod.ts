import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { POD_PATHS, PORTS } from '../../../src/api/cluster.ts';
import { messageOf } from '../../../src/lib/errors.ts';
import type { ApiObject } from '../../cluster/api-client.ts';
import type { NodeCluster } from '../../cluster/node.ts';
import { CONTAINERD } from '../../cluster/node/config.ts';
import type { PodObject } from './fixture.ts';

const NODE = '/usr/local/bin/node';
/** Script code that defines `call({method, path, content, headers})` → `{status, text}`. It reads gateway address and token from the files of the agent container. */
const CALL = `
  import { readFileSync } from 'node:fs';
  import { request } from 'node:https';
  const read = (path) => readFileSync(path, 'utf8').trim();
  const endpoint = (name) => read('${POD_PATHS.endpoints}/' + name);
  const call = ({ method, path, content, headers }) => new Promise((resolve, reject) => {
    const own = { authorization: 'Bearer ' + read('${POD_PATHS.gatewayToken}'), 'content-type': 'application/json' };
    const key = { 'idempotency-key': 'test-' + process.hrtime.bigint() };
    const options = { method, ca: endpoint('ca.crt'), servername: endpoint('gateway-name'), headers: { ...own, ...key, ...headers } };
    const calling = request(new URL(path, endpoint('gateway')), options, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk)).on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }));
    });
    calling.on('error', reject).end(content);
  });
`;
const LAUNCHER = ['/usr/local/bin/launcher', 'run'];
type Container = 'agent' | 'sandbox' | 'server';

/**
 * Runs a script in a container of a pod with the user, capabilities and seccomp filter of the container, and returns the JSON that the
 * script prints. `confined` runs it under the launcher too, like every process in the sandbox. It uses containerd on the node, because the
 * admission policy denies `kubectl exec`.
 */
export async function runInPod(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  container: Container,
  script: string,
  { confined = false } = {},
): Promise<unknown> {
  const program = [...(confined ? LAUNCHER : []), NODE, '--input-type=module', '-e', script];
  return JSON.parse(await execInPod(node, pod, container, program)) as unknown;
}

/**
 * Runs a program in a container, as `runInPod` runs a script, and returns its output. A file receives the output: when a program ends, `ctr`
 * stops to read the pipes of its own, and may lose what they still hold.
 */
export async function execInPod(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  container: Container,
  program: readonly string[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-exec-'));
  try {
    const output = join(folder, 'output');
    const exec = ['--exec-id', `test-${process.hrtime.bigint()}`, '--log-uri', `file://${output}`];
    const target = [containerId(pod, container), ...program];
    try {
      await node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'tasks', 'exec', ...exec, ...target);
    } catch (error) {
      throw new Error(`${messageOf(error)}\n${await readFile(output, 'utf8').catch(() => '')}`, { cause: error });
    }
    return await readFile(output, 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}

export interface PodCall {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  /** Replaces the pod's token. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PodCallResponse {
  readonly status: number;
  /** The error code; empty for a successful response. */
  readonly code: string;
  readonly body: ApiObject;
}

/** Sends a request to the gateway from the agent container, with the pod's token by default. */
export async function callGateway(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  { method = 'POST', path, body, token, headers = {} }: PodCall,
): Promise<PodCallResponse> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const content = body === undefined ? '' : JSON.stringify(body);
  const script = `${CALL}
    const { status, text } = await call(${JSON.stringify({ method, path, content, headers: { ...authorization, ...headers } })});
    console.log(JSON.stringify({ status, body: text === '' ? {} : JSON.parse(text) }));
    process.exit(0);
  `;
  const answer = (await runInPod(node, pod, 'agent', script)) as Pick<PodCallResponse, 'status' | 'body'>;
  const { code = '' } = (answer.body['error'] ?? {}) as { code?: string };
  return { ...answer, code };
}

/** A script for the agent container that repeats a request and prints the time and status of each response: `{at, status}[]`. */
export function repeatedCallScript(path: string, body: object, milliseconds: number): string {
  const call = JSON.stringify({ method: 'POST', path, content: JSON.stringify(body), headers: {} });
  return `${CALL}
    const answers = [];
    const end = Date.now() + ${milliseconds};
    while (Date.now() < end) {
      const { status } = await call(${call});
      answers.push({ at: Date.now(), status });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    console.log(JSON.stringify(answers));
    process.exit(0);
  `;
}

/** A script that prints which addresses accept a connection: `{[address]: boolean}`. Dropped packets count as false after a timeout. */
export function reachabilityScript(addresses: readonly string[]): string {
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

/** The pid of the container's first process in the PID namespace of the node. */
export async function containerPid(
  node: Pick<NodeCluster, 'onNode'>,
  pod: PodObject,
  container: Container,
): Promise<string> {
  const tasks = await node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'tasks', 'list');
  const rows = tasks.split('\n').map((line) => line.split(/\s+/));
  const [, pid] = rows.find(([id]) => id === containerId(pod, container)) ?? [];
  if (pid === undefined) throw new Error(`the container ${container} of ${pod.metadata.name} is not running`);
  return pid;
}

/** The children of a process, by their pids in the PID namespace of the node. */
export async function childPids(node: Pick<NodeCluster, 'onNode'>, pid: string): Promise<string[]> {
  const text = await node.onNode('cat', `/proc/${pid}/task/${pid}/children`);
  return text.split(' ').filter((child) => child.trim() !== '');
}

/** Stops (SIGSTOP) the agent process and closes its connections, so that the test can act in its place. */
export async function freezeAgentProcess(node: Pick<NodeCluster, 'onNode'>, pod: PodObject): Promise<void> {
  const pid = await containerPid(node, pod, 'agent');
  await node.onNode('kill', '-STOP', pid);
  await node.onNode('nsenter', '--net', '--target', pid, 'ss', '--kill', 'dport', '=', `:${PORTS.gateway}`);
}

function containerId({ status, metadata }: PodObject, container: Container): string {
  const found = status.containerStatuses?.find(({ name }) => name === container)?.containerID;
  if (found === undefined) throw new Error(`${metadata.name} has no container ${container} yet`);
  return found.replace('containerd://', '');
}
