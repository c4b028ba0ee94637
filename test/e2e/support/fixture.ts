import assert from 'node:assert/strict';
import type { Condition } from '../../../src/api/v1alpha1/common.ts';
import type { SessionStreamLine, UserMessageReceipt, SessionSummary } from '../../../src/gateway-api/user-api.ts';
import type { ApiObject } from '../../cluster/api-client.ts';
import { type CommandResult, type InstalledCluster } from './installed-cluster.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { pollAssertion } from '../../support/poll.ts';
import { readSessionLines } from './session-lines.ts';
import { buildAgent, buildTrustPolicy } from '../../support/builders.ts';

/** Objects and clients for tests on real pods. */

const API_VERSION = 'temper.dev/v1alpha1';
const TIMEOUT_MS = 60_000;
/** For the first agents of a namespace. */
const START_TIMEOUT_MS = 120_000;
/** A user that the admission policy of protected namespaces allows to delete pods. */
const POD_GARBAGE_COLLECTOR = {
  user: 'system:serviceaccount:kube-system:pod-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
};

export function namespaceObject(name: string, labels: Record<string, string> = { 'temper.dev/agents': 'true' }) {
  const enforce = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { ...enforce, ...labels } } };
}

/** By default, the policy allows agents to send messages to each other. */
export function policyObject(namespace: string, spec: object = { tools: { allow: ['agent_send'] } }) {
  return buildTrustPolicy(namespace, spec, 'policy');
}

/** The replay script recognizes the agent by its system prompt. */
export function agentObject(namespace: string, name: string, spec: object = {}) {
  const defaults = {
    trustPolicyRef: { name: 'policy' },
    model: { primary: 'default/default' },
    prompt: { system: `You are ${name}.` },
  };
  return buildAgent(namespace, name, { ...defaults, ...spec });
}

/** The node has place for the agents of the other suites only. */
export async function deleteAgents(cluster: InstalledCluster, namespace: string): Promise<void> {
  await cluster.kubectl('delete', 'agents', '--all', '-n', namespace, '--wait=false');
}

interface AgentState {
  readonly metadata: { readonly uid: string };
  readonly status?: {
    readonly pod?: { readonly name: string; readonly uid: string };
    readonly conditions?: Condition[];
  };
}

/** A client for the agents of one namespace, with the rights of a user and of an administrator. */
export class NamespaceAgents {
  readonly #cluster: InstalledCluster;
  readonly namespace: string;

  constructor(cluster: InstalledCluster, namespace: string) {
    this.#cluster = cluster;
    this.namespace = namespace;
  }

  /** Creates the namespace with the objects, and waits for these agents of them. */
  async start(objects: readonly object[], names: readonly string[]): Promise<void> {
    await this.#cluster.apply(namespaceObject(this.namespace));
    await this.#cluster.apply(...objects);
    for (const name of names) await this.waitForReason(name, 'Running', 'Ready', START_TIMEOUT_MS);
  }

  async get(name: string): Promise<AgentState> {
    const path = `/apis/${API_VERSION}/namespaces/${this.namespace}/agents/${name}`;
    return (await this.#cluster.node.admin.call('GET', path)).body as unknown as AgentState;
  }

  async condition(name: string, type = 'Ready'): Promise<Condition | undefined> {
    return (await this.get(name)).status?.conditions?.find((condition) => condition.type === type);
  }

  /** Waits until the condition has the reason and returns its message. */
  async waitForReason(name: string, reason: string, type = 'Ready', timeoutMs = TIMEOUT_MS): Promise<string> {
    let message = '';
    await pollAssertion(
      `reason ${reason} of ${name}`,
      async () => {
        const found = await this.condition(name, type);
        assert.equal(found?.reason, reason, `${name}: ${JSON.stringify(found)}`);
        message = found.message;
      },
      { timeoutMs: timeoutMs },
    );
    return message;
  }

  /** The pods of one agent, or all pods of the namespace. */
  async listPods(agent?: string): Promise<PodObject[]> {
    const { body } = await this.#cluster.node.admin.call('GET', `/api/v1/namespaces/${this.namespace}/pods`);
    const all = body['items'] as PodObject[];
    return all.filter(({ metadata }) => agent === undefined || metadata.annotations?.['temper.dev/agent'] === agent);
  }

  /** The pod in the agent's `status.pod`. */
  async boundPod(name: string): Promise<PodObject> {
    const boundUid = (await this.get(name)).status?.pod?.uid;
    const found = (await this.listPods()).find(({ metadata }) => metadata.uid === boundUid);
    assert.ok(found !== undefined, `${name} has no pod`);
    return found;
  }

  /** Deletes the pod with this uid. Does not wait until it has terminated. */
  async deletePod({ metadata: { name, uid } }: PodObject): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/pods/${name}`;
    const answer = await this.#cluster.node.admin.call('DELETE', path, {
      as: POD_GARBAGE_COLLECTOR,
      body: { preconditions: { uid } },
    });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }

  async patchSpec(name: string, spec: object): Promise<void> {
    const path = `/apis/${API_VERSION}/namespaces/${this.namespace}/agents/${name}`;
    await this.#merge(path, { spec });
  }

  async patchPolicySpec(spec: object): Promise<void> {
    await this.#merge(`/apis/${API_VERSION}/namespaces/${this.namespace}/trustpolicies/policy`, { spec });
  }

  /** Sends a message without waiting for the reply. */
  async send(agent: string, text: string): Promise<UserMessageReceipt> {
    return JSON.parse(succeeded(await this.temper('send', agent, text, '-o', 'json')).stdout) as UserMessageReceipt;
  }

  /** Sends a message and returns the reply. */
  async sendAndWait(agent: string, text: string): Promise<string> {
    const { stdout } = succeeded(await this.temper('send', agent, text, '--follow', '-o', 'json'));
    return replies(jsonLines(stdout)).join('\n');
  }

  /** The events and replies of a session so far. */
  async sessionLines(agent: string, session: string): Promise<SessionStreamLine[]> {
    const { kubeconfig } = this.#cluster.node;
    return readSessionLines(kubeconfig, { namespace: this.namespace, agent, session });
  }

  async sessions(agent: string): Promise<SessionSummary[]> {
    const { stdout } = succeeded(await this.temper('sessions', agent, '-o', 'json'));
    return jsonLines(stdout);
  }

  temper(...args: string[]): Promise<CommandResult> {
    return this.#cluster.temper(...args, '-n', this.namespace);
  }

  async #merge(path: string, body: object): Promise<void> {
    const contentType = 'application/merge-patch+json';
    const answer = await this.#cluster.node.admin.call('PATCH', path, { body, contentType });
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
    readonly containerStatuses?: readonly {
      name: string;
      containerID?: string;
      imageID?: string;
      restartCount: number;
    }[];
  };
}

function succeeded(result: CommandResult): CommandResult {
  assert.equal(result.code, 0, result.stderr);
  return result;
}

/** The texts of the replies among the lines. */
export function replies(lines: readonly SessionStreamLine[]): string[] {
  return lines.flatMap((line) => (line.kind === 'reply' ? [line.text] : []));
}
