import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Condition } from '../../src/api/v1alpha1/common.ts';
import { PeopleGateway } from '../../src/cli/cluster/people-gateway.ts';
import { loadClusterAccess } from '../../src/kube/cluster-access.ts';
import { createKubeClient } from '../../src/kube/kube-client.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { FollowLine, PersonReceipt, SessionSummary } from '../../src/remote/people.ts';
import type { ApiObject } from '../cluster/api-client.ts';
import { type Ended, type Installation, RELEASE_NAMESPACE } from './installation.ts';

/** What the tests on real pods make and ask. */

const API_VERSION = 'temper.dev/v1alpha1';
const PATIENCE_MS = 60_000;
/** The fence lets nobody else remove a pod. */
const CONTROL_PLANE = {
  user: 'system:serviceaccount:kube-system:pod-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
};
const NO_METRICS = { count: () => {}, gauge: () => {}, observe: () => {}, watch: () => {} };

export function namespaceObject(name: string, labels: Record<string, string> = { 'temper.dev/agents': 'true' }) {
  const enforce = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { ...enforce, ...labels } } };
}

/** By default one under which agents may write to each other. */
export function policyObject(namespace: string, spec: object = { tools: { allow: ['agent_send'] } }) {
  return { apiVersion: API_VERSION, kind: 'TrustPolicy', metadata: { name: 'policy', namespace }, spec };
}

/** The replay script knows it by its system prompt, which names it. */
export function agentObject(namespace: string, name: string, spec: object = {}) {
  const common = {
    trustPolicyRef: { name: 'policy' },
    model: { primary: 'default/default' },
    prompt: { system: `You are ${name}.` },
  };
  return { apiVersion: API_VERSION, kind: 'Agent', metadata: { name, namespace }, spec: { ...common, ...spec } };
}

interface AgentState {
  readonly metadata: { readonly uid: string };
  readonly status?: {
    readonly pod?: { readonly name: string; readonly uid: string };
    readonly conditions?: Condition[];
  };
}

/** The agents of one namespace, as people and an administrator see them. */
export class Agents {
  readonly #installation: Installation;
  readonly namespace: string;

  constructor(installation: Installation, namespace: string) {
    this.#installation = installation;
    this.namespace = namespace;
  }

  async state(name: string): Promise<AgentState> {
    const path = `/apis/${API_VERSION}/namespaces/${this.namespace}/agents/${name}`;
    return (await this.#installation.node.admin.call('GET', path)).body as unknown as AgentState;
  }

  async condition(name: string, type = 'Ready'): Promise<Condition | undefined> {
    return (await this.state(name)).status?.conditions?.find((condition) => condition.type === type);
  }

  /** Waits until the condition has the reason; gives its message. */
  async until(name: string, reason: string, type = 'Ready', patience = PATIENCE_MS): Promise<string> {
    let message = '';
    await eventually(async () => {
      const found = await this.condition(name, type);
      assert.equal(found?.reason, reason, `${name}: ${JSON.stringify(found)}`);
      message = found.message;
    }, patience);
    return message;
  }

  /** The pods that exist for an agent, or for any. */
  async pods(agent?: string): Promise<PodObject[]> {
    const { body } = await this.#installation.node.admin.call('GET', `/api/v1/namespaces/${this.namespace}/pods`);
    const all = body['items'] as PodObject[];
    return all.filter(({ metadata }) => agent === undefined || metadata.annotations?.['temper.dev/agent'] === agent);
  }

  /** The pod the agent is bound to. */
  async pod(name: string): Promise<PodObject> {
    const wanted = (await this.state(name)).status?.pod?.uid;
    const found = (await this.pods()).find(({ metadata }) => metadata.uid === wanted);
    assert.ok(found !== undefined, `${name} has no pod`);
    return found;
  }

  /** The very pod; its end may take a while. */
  async remove({ metadata: { name, uid } }: PodObject): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/pods/${name}`;
    const answer = await this.#installation.node.admin.call('DELETE', path, {
      as: CONTROL_PLANE,
      body: { preconditions: { uid } },
    });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }

  async spec(name: string, spec: object): Promise<void> {
    const path = `/apis/${API_VERSION}/namespaces/${this.namespace}/agents/${name}`;
    await this.#merge(path, { spec });
  }

  async policySpec(spec: object): Promise<void> {
    await this.#merge(`/apis/${API_VERSION}/namespaces/${this.namespace}/trustpolicies/policy`, { spec });
  }

  /** Says something and waits for no answer. */
  async tell(agent: string, text: string): Promise<PersonReceipt> {
    return JSON.parse(succeeded(await this.temper('send', agent, text, '-o', 'json')).stdout) as PersonReceipt;
  }

  /** Says something and gives the answer. */
  async ask(agent: string, text: string): Promise<string> {
    const { stdout } = succeeded(await this.temper('send', agent, text, '--follow', '-o', 'json'));
    return replies(linesOf(stdout)).join('\n');
  }

  /** What is known of a session so far: what happened in it, and what was answered. */
  async lines(agent: string, session: string): Promise<FollowLine[]> {
    const { node } = this.#installation;
    const access = await loadClusterAccess({ kind: 'file', path: node.kubeconfig }, systemClock);
    await using transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS });
    const kube = createKubeClient(transport);
    const cluster = { access, kube, namespace: this.namespace, temperNamespace: RELEASE_NAMESPACE, place: 'test' };
    const gateway = new PeopleGateway(
      { ...cluster, [Symbol.asyncDispose]: async () => {} },
      AbortSignal.timeout(PATIENCE_MS),
    );
    let text = '';
    for await (const line of await gateway.lines(`agents/${agent}/sessions/${session}/events`)) text += `${line}\n`;
    return linesOf(text);
  }

  async sessions(agent: string): Promise<SessionSummary[]> {
    const { stdout } = succeeded(await this.temper('sessions', agent, '-o', 'json'));
    return jsonLines(stdout) as SessionSummary[];
  }

  temper(...args: string[]): Promise<Ended> {
    return this.#installation.temper(...args, '-n', this.namespace);
  }

  async #merge(path: string, body: object): Promise<void> {
    const contentType = 'application/merge-patch+json';
    const answer = await this.#installation.node.admin.call('PATCH', path, { body, contentType });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }
}

export interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { uid: string }[];
    readonly deletionTimestamp?: string;
  };
  readonly spec: ApiObject;
  readonly status: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly { type: string; status: string; lastTransitionTime: string }[];
    readonly containerStatuses?: readonly { name: string; containerID?: string; restartCount: number }[];
  };
}

function succeeded(ended: Ended): Ended {
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

function linesOf(text: string): FollowLine[] {
  return jsonLines(text) as FollowLine[];
}

function jsonLines(text: string): unknown[] {
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [JSON.parse(line) as unknown]));
}

/** The answers among what happened. */
export function replies(lines: readonly FollowLine[]): string[] {
  return lines.flatMap((line) => (line.kind === 'reply' ? [line.text] : []));
}

/** Tries until it does not fail; what was seen last is the failure when it takes too long. */
export async function eventually(attempt: () => Promise<void>, patience = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + patience;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(100);
  }
}
