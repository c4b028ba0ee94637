import { LABELS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client.ts';
import type { GuardState } from '../agent/observed.ts';
import type { Cache } from '../cache.ts';
import { type PlainObject, TYPES } from '../kube-types.ts';
import { type ExpectedGuards, guardProblem, guardVersion } from './policies.ts';

export interface GuardDeps {
  readonly client: KubeClient;
  readonly policies: Cache<PlainObject>;
  readonly bindings: Cache<PlainObject>;
  /** Undefined: no guards are part of this installation, and no namespace counts as fenced. */
  readonly expected: ExpectedGuards | undefined;
}

interface Known {
  readonly version: string;
  readonly labelled: boolean;
  readonly state: GuardState;
}

const FIX = 'install the chart again with clusterPrerequisites.enabled, in the one release of the cluster that has it';

/** Whether agent pods are safe from strangers, by namespace. What cannot be told is not safe. */
export class Guard {
  readonly #deps: GuardDeps;
  readonly #known = new Map<string, Known>();
  readonly #running = new Map<string, Promise<GuardState>>();

  constructor(deps: GuardDeps) {
    this.#deps = deps;
  }

  /** From memory where it is still true; looked at otherwise. Throws ApiError. */
  state(namespace: string, signal: AbortSignal): Promise<GuardState> {
    const known = this.#known.get(namespace);
    if (known !== undefined && known.version === this.#version()) return Promise.resolve(known.state);
    return this.#once(namespace, signal);
  }

  /** Looks at the namespace again. True when the answer is another one. */
  async refresh(namespace: string, signal: AbortSignal): Promise<boolean> {
    const before = this.#known.get(namespace)?.state;
    const after = await this.#once(namespace, signal);
    return JSON.stringify(before) !== JSON.stringify(after);
  }

  /** Were the guards of the namespace missing at the last look? */
  isMissing(namespace: string): boolean {
    return this.#known.get(namespace)?.state.kind === 'missing';
  }

  /** What is known of the namespaces looked at. */
  known(): GuardState['kind'][] {
    return [...this.#known.values()].map(({ state }) => state.kind);
  }

  #once(namespace: string, signal: AbortSignal): Promise<GuardState> {
    const running = this.#running.get(namespace);
    if (running !== undefined) return running;
    const started = this.#look(namespace, signal).finally(() => this.#running.delete(namespace));
    this.#running.set(namespace, started);
    return started;
  }

  async #look(namespace: string, signal: AbortSignal): Promise<GuardState> {
    const version = this.#version();
    const labelled = await this.#isLabelled(namespace, signal);
    const known = this.#known.get(namespace);
    const isKnown = known?.version === version && known.labelled === labelled && known.state.kind !== 'missing';
    const state = isKnown ? known.state : await this.#judge(namespace, labelled, signal);
    this.#known.set(namespace, { version, labelled, state });
    return state;
  }

  async #judge(namespace: string, labelled: boolean, signal: AbortSignal): Promise<GuardState> {
    const { expected, policies, bindings } = this.#deps;
    if (expected === undefined) return { kind: 'notFenced' };
    const problem = guardProblem({ policies: policies.list(), bindings: bindings.list() }, expected);
    if (problem !== undefined) return { kind: 'missing', message: `${problem}, so no new pod is made; ${FIX}` };
    if (!labelled) return { kind: 'notFenced' };
    return (await this.#probe(namespace, signal)) ?? { kind: 'fenced' };
  }

  /**
   * A pod without the label of agent pods must be refused; the same with it must not, or another rule is what refuses. Nothing is stored.
   * A policy that was just made lets writes through for a while, which is why reading it is not enough.
   */
  async #probe(namespace: string, signal: AbortSignal): Promise<GuardState | undefined> {
    if (!(await this.#isRefused(namespace, {}, signal))) {
      const message = `the fence of namespace "${namespace}" let a probe through that it must refuse, so no new pod is made; ${FIX}`;
      return { kind: 'missing', message };
    }
    if (await this.#isRefused(namespace, { [LABELS.agentPod]: 'true' }, signal)) {
      const message = `whether namespace "${namespace}" is fenced cannot be told: a dry run of an agent pod is refused as well; where another release installs the guards, list this one's namespace in its guards.operatorNamespaces; else look at the namespace's quotas and other admission rules`;
      return { kind: 'missing', message };
    }
    return undefined;
  }

  async #isRefused(namespace: string, labels: Record<string, string>, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.client.create(TYPES.pods, probePod(namespace, labels), signal, { dryRun: true });
      return false;
    } catch (error) {
      if (error instanceof ApiError && (error.status === 403 || error.status === 422)) return true;
      throw error;
    }
  }

  /** Who may not even read the namespace cannot call it fenced. */
  async #isLabelled(namespace: string, signal: AbortSignal): Promise<boolean> {
    try {
      const found = await this.#deps.client.get<PlainObject>(TYPES.namespaces, { name: namespace }, signal);
      return found?.metadata.labels?.[LABELS.agents] === 'true';
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return false;
      throw error;
    }
  }

  #version(): string {
    return guardVersion({ policies: this.#deps.policies.list(), bindings: this.#deps.bindings.list() });
  }
}

function probePod(namespace: string, labels: Record<string, string>) {
  const amounts = { cpu: '1m', memory: '1Mi', 'ephemeral-storage': '1Mi' };
  const securityContext = {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'temper-guard-probe', namespace, labels },
    spec: {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'probe',
          image: 'temper.invalid/probe',
          resources: { requests: amounts, limits: amounts },
          securityContext,
        },
      ],
    },
  };
}
