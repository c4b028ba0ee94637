import { LABELS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { NamespaceProtection } from '../agent/observed.ts';
import type { Cache } from '../kube/cache.ts';
import { KeyedTurns } from '../kube/keyed-turns.ts';
import { type PlainObject, TYPES } from '../kube/types.ts';
import { type ExpectedPolicies, installedPoliciesError, installedPoliciesVersion } from './installed-policies.ts';

export interface AdmissionPolicyMonitorDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly policies: Cache<PlainObject>;
  readonly bindings: Cache<PlainObject>;
  /** Undefined: the installation has no admission policies, and no namespace is protected. */
  readonly expected: ExpectedPolicies | undefined;
}

interface CachedState {
  readonly version: string;
  readonly labelled: boolean;
  readonly state: NamespaceProtection;
  /** When the policies ceased to be in force, by the monotonic clock. */
  readonly notEnforcedSince: number | undefined;
}

/** What a check finds; whether a missing policy is lasting depends on the checks before. */
type Finding = Exclude<NamespaceProtection, { kind: 'notEnforced' }> | { kind: 'notEnforced'; message: string };

/** An upgrade of the chart replaces policies and operator one after the other; the statuses of running agents do not report that. */
const UPGRADE_GRACE_MS = 60_000;

const FIX =
  'upgrade the one release of the chart that installs the admission policies, with clusterPrerequisites.enabled';

/** Whether the admission policies protect agent pods, by namespace. An unknown state counts as not protected. */
export class AdmissionPolicyMonitor {
  readonly #deps: AdmissionPolicyMonitorDeps;
  readonly #known = new Map<string, CachedState>();
  readonly #turns = new KeyedTurns();

  constructor(deps: AdmissionPolicyMonitorDeps) {
    this.#deps = deps;
  }

  /** The cached state while the policies have not changed; otherwise checks the namespace. Throws ApiError. */
  state(namespace: string, signal: AbortSignal): Promise<NamespaceProtection> {
    const current = this.#current(namespace);
    if (current !== undefined) return Promise.resolve(current);
    return this.#turns.run(
      namespace,
      signal,
      async () => this.#current(namespace) ?? (await this.#check(namespace, signal)),
    );
  }

  /** Checks the namespace again. Returns true when the state changed. Throws ApiError. */
  refresh(namespace: string, signal: AbortSignal): Promise<boolean> {
    return this.#turns.run(namespace, signal, async () => {
      const before = this.#known.get(namespace)?.state;
      return JSON.stringify(before) !== JSON.stringify(await this.#check(namespace, signal));
    });
  }

  /** Forgets all other namespaces: their last agent, or the namespace itself, was deleted. */
  retain(namespaces: readonly string[]): void {
    const kept = new Set(namespaces);
    for (const namespace of this.#known.keys()) if (!kept.has(namespace)) this.#known.delete(namespace);
  }

  /** Were the admission policies not in force at the last check? */
  isNotEnforced(namespace: string): boolean {
    return this.#known.get(namespace)?.state.kind === 'notEnforced';
  }

  /** The states of all checked namespaces. */
  states(): NamespaceProtection['kind'][] {
    return [...this.#known.values()].map(({ state }) => state.kind);
  }

  #current(namespace: string): NamespaceProtection | undefined {
    const known = this.#known.get(namespace);
    return known?.version === this.#version() ? known.state : undefined;
  }

  async #check(namespace: string, signal: AbortSignal): Promise<NamespaceProtection> {
    const version = this.#version();
    const labelled = await this.#isLabelled(namespace, signal);
    const known = this.#known.get(namespace);
    const isKnown = known?.version === version && known.labelled === labelled && known.state.kind !== 'notEnforced';
    const finding = isKnown ? known.state : await this.#evaluate(namespace, labelled, signal);
    const { state, notEnforcedSince } = this.#dated(finding, known);
    this.#known.set(namespace, { version, labelled, state, notEnforcedSince });
    return state;
  }

  #dated(finding: Finding, known: CachedState | undefined): Pick<CachedState, 'state' | 'notEnforcedSince'> {
    if (finding.kind !== 'notEnforced') return { state: finding, notEnforcedSince: undefined };
    const now = this.#deps.clock.monotonic();
    const notEnforcedSince = known?.notEnforcedSince ?? now;
    return { state: { ...finding, isLasting: now - notEnforcedSince >= UPGRADE_GRACE_MS }, notEnforcedSince };
  }

  async #evaluate(namespace: string, labelled: boolean, signal: AbortSignal): Promise<Finding> {
    const { expected, policies, bindings } = this.#deps;
    if (expected === undefined) return { kind: 'notProtected' };
    const problem = installedPoliciesError({ policies: policies.list(), bindings: bindings.list() }, expected);
    if (problem !== undefined)
      return { kind: 'notEnforced', message: `${problem}, so the operator creates no new pod; ${FIX}` };
    if (!labelled) return { kind: 'notProtected' };
    return (await this.#probe(namespace, signal)) ?? { kind: 'protected' };
  }

  /**
   * Dry-run creates of two pods: without the agent-pod label the API server must reject it, with the label it must not, otherwise another
   * rule rejects both. Reading the policies is not enough, because a new policy is enforced only after a delay.
   */
  async #probe(namespace: string, signal: AbortSignal): Promise<Finding | undefined> {
    if (!(await this.#isRejected(namespace, {}, signal))) {
      const message = `the admission policies accepted a probe pod in namespace "${namespace}" that they must reject, so the operator creates no new pod; ${FIX}`;
      return { kind: 'notEnforced', message };
    }
    if (await this.#isRejected(namespace, { [LABELS.agentPod]: 'true' }, signal)) {
      const message = `cannot determine whether namespace "${namespace}" is protected: the dry run of an agent pod is rejected too; if another release installs the admission policies, list this release's namespace in its admissionPolicies.operatorNamespaces; otherwise check the quotas and the other admission rules of the namespace`;
      return { kind: 'notEnforced', message };
    }
    return undefined;
  }

  async #isRejected(namespace: string, labels: Record<string, string>, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.client.create(TYPES.pods, probePod(namespace, labels), signal, { dryRun: true });
      return false;
    } catch (error) {
      if (error instanceof ApiError && (error.status === 403 || error.status === 422)) return true;
      throw error;
    }
  }

  /** A namespace that the operator may not read counts as not labelled. */
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
    return installedPoliciesVersion({ policies: this.#deps.policies.list(), bindings: this.#deps.bindings.list() });
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
    metadata: { name: 'temper-admission-probe', namespace, labels },
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
