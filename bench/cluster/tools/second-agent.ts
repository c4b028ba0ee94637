import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LABELS, NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import { Notifier } from '../../../src/lib/async/notifier.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { type GatewayProcess, startGatewayProcess } from '../../../test/support/gateway/gateway-process.ts';
import { replicaConfig } from '../../../test/support/gateway/gateway-fixture.ts';
import { type ApprovalsFixture, NAMESPACE } from '../../../test/support/operator/approvals-fixture.ts';
import { poll } from '../../../test/support/poll.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';

const POLL_SECONDS = 20;
const TIMEOUT_MS = 60_000;
const ADDRESS = '127.0.0.1';

/**
 * A gateway of its own process, and the pod of another agent: as a pod does, it waits for the next version of its assignment and reads the
 * tools of its session then.
 */
export class SecondAgent implements AsyncDisposable {
  readonly #stopping = new AbortController();
  readonly #changes = new Notifier();
  readonly #call: GatewayProcess['call'];
  readonly #open: AsyncDisposableStack;
  readonly #token: string;
  #tools = '';

  private constructor(call: GatewayProcess['call'], token: string, open: AsyncDisposableStack) {
    this.#call = call;
    this.#token = token;
    this.#open = open;
    const running = this.#follow();
    open.defer(() => running);
    open.defer(() => this.#stopping.abort());
  }

  static async open(fixture: ApprovalsFixture, agent: string): Promise<SecondAgent> {
    await using opening = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'temper-bench-gateway-'));
    opening.defer(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'delivery-token.key'), randomBytes(32));
    const { plane } = fixture.apiServer;
    const config = () => replicaConfig({ plane, nats: fixture.nats, folder });
    const gateway = opening.use(await startGatewayProcess({ folder, replicaConfig: config }));
    const token = await podToken(fixture, agent);
    await poll('the gateway to know the pod', async () => {
      return (await gateway.call('GET', '/v1/assignment', { token })).status === 200;
    });
    return new SecondAgent(gateway.call, token, opening.move());
  }

  /** Resolves when the pod has the tool, or has it no more. */
  async until(digest: string, isCallable: boolean): Promise<void> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    while (this.#tools.includes(digest) !== isCallable) {
      signal.throwIfAborted();
      await this.#changes.wait(signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open[Symbol.asyncDispose]();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    let query = 'wait=0';
    while (!signal.aborted) {
      const answer = await this.#get(`/v1/assignment?${query}`);
      if (answer?.status !== 200) continue;
      const { version } = JSON.parse(answer.text) as { version: string };
      query = `wait=${POLL_SECONDS}&version=${encodeURIComponent(version)}`;
      this.#tools = (await this.#get('/v1/sessions/s-measured/tools'))?.text ?? '';
      this.#changes.notifyAll();
    }
  }

  async #get(path: string): Promise<Awaited<ReturnType<GatewayProcess['call']>> | undefined> {
    const { signal } = this.#stopping;
    try {
      return await this.#call('GET', path, { token: this.#token, signal });
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }
}

/** A token of the pod that the operator created for the agent, whose requests come from this machine. */
async function podToken({ apiServer }: ApprovalsFixture, agent: string): Promise<string> {
  const { uid: agentUid } = (await apiServer.getAgent(NAMESPACE, agent)).metadata;
  const pod = await poll(`the pod of ${agent}`, async () => {
    const pods = await apiServer.listPods(NAMESPACE);
    return pods.find(({ metadata }) => metadata.labels?.[LABELS.agentUid] === agentUid);
  });
  const { name, uid } = pod.metadata;
  const status = { podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] };
  const ref = { namespace: NAMESPACE, name };
  await apiServer.client.patch<Pod>(TYPES.pods, ref, { status }, NEVER_ABORTED, { subresource: 'status' });
  const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${NAMESPACE_OBJECTS.agentServiceAccount}`;
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
  const spec = { audiences: ['temper-gateway'], expirationSeconds: 3_600, boundObjectRef };
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const answer = await apiServer.plane.admin.call('POST', `${account}/token`, { body: request });
  if (answer.status !== 201) throw new Error(`token: ${answer.status} ${String(answer.body['message'])}`);
  return (answer.body['status'] as { token: string }).token;
}
