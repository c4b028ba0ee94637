import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { LABELS } from '../../api/cluster.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import type { PromotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { RecordedInput } from '../../tempering/types.ts';
import { VERIFICATION_TIMEOUT_MS } from '../../tempering/verification/verification-case.ts';
import { type Pod, TYPES } from '../kube/types.ts';
import { readDependencies } from '../promotion/dependencies.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import { admissibleInputs } from '../../tempering/promotion/recording-rules.ts';
import { verificationWork } from '../promotion/verification.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { VerifierPods } from '../verifier/verifier-pods.ts';
import { rerunResult } from './rerun-case.ts';
import { attemptOf, runsInputs, type RerunOrder, type RerunProgress } from './rerun-plan.ts';

type RerunStore = Pick<PromotionStore, 'assign' | 'work' | 'outputs' | 'removeVerification' | 'recordedInputs'>;

export interface ToolRerunsDeps {
  readonly client: Pick<KubeReader, 'get'>;
  readonly clock: Clock;
  readonly store: RerunStore;
  readonly verifierPods: VerifierPods;
}

/** What a run needs beyond the object. */
export interface RerunContext {
  readonly order: RerunOrder;
  readonly rules: PromotionRules;
  /** UIDs of agents whose recorded inputs run too. */
  readonly agentUids: readonly string[];
}

/** A run that a pod works on. */
interface Run {
  readonly attempt: string;
  readonly pod: { readonly name: string; readonly uid: string };
  readonly startedAt: number;
}

/** Runs without a result. */
interface Failures {
  readonly attempt: string;
  readonly count: number;
  readonly problem: string;
  readonly notBefore: number;
}

/** Recorded inputs of one run, which a pod and two gateways hold. */
const MAX_INPUT_BYTES = 4 * 1_024 * 1_024;
const MAX_INPUTS = 200;
/** Beyond the time that the pod takes: its start of the work and the way of its outputs. */
const TIMEOUT_MS = VERIFICATION_TIMEOUT_MS + 60_000;
/** Results are notified; a notification may be lost. */
const WAIT_MS = 5_000;
const MAX_FAILURES = 3;
const COOL_DOWN_MS = 60 * 60_000;

/**
 * Runs the tests of EmergentTools again in verifier pods, one run per object at a time. The label of a pod names its run, and NATS has the
 * work and the outputs, so the next leader continues each run.
 */
export class ToolReruns {
  readonly #deps: ToolRerunsDeps;
  readonly #runs = new Map<string, Run>();
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, Failures>();

  constructor(deps: ToolRerunsDeps) {
    this.#deps = deps;
  }

  /** Work queue keys of the tools that wait for a pod or its outputs. */
  waiting(): readonly string[] {
    return [...this.#waiting];
  }

  /** Finds the pods of runs that an earlier leader left. Call it before unused pods are deleted. */
  resume(tools: readonly StoredTool[]): void {
    const { verifierPods, clock } = this.#deps;
    const assigned = new Map(verifierPods.pods().map((pod) => [pod.metadata.labels?.[LABELS.verification], pod]));
    for (const tool of tools) {
      const pod = podRef(assigned.get(attemptOf(tool)));
      if (pod === undefined || this.#runs.has(keyOf(tool)) || verifierPods.problemOf(pod) !== undefined) continue;
      verifierPods.use(pod.uid, tool.metadata.namespace);
      this.#runs.set(keyOf(tool), { attempt: attemptOf(tool), pod, startedAt: clock.monotonic() });
    }
  }

  /** Takes the next step of a run. Never throws because of NATS: the tool then waits. Throws ApiError. */
  async step(tool: StoredTool, context: RerunContext, signal: AbortSignal): Promise<RerunProgress> {
    const key = keyOf(tool);
    this.#waiting.add(key);
    try {
      return await this.#step(key, tool, context, signal);
    } catch (error) {
      if (!isTemperError(error)) throw error;
      return waiting(`its tests cannot run: ${printable(messageOf(error, 300), 300)}`);
    }
  }

  /** Frees what the run of the object uses. Call it once the result is stored, or when no run is needed. Idempotent. */
  async release(key: string): Promise<void> {
    const { verifierPods, store } = this.#deps;
    this.#waiting.delete(key);
    this.#failures.delete(key);
    verifierPods.forget(key);
    const run = this.#runs.get(key);
    if (run === undefined) return;
    this.#runs.delete(key);
    verifierPods.release(run.pod.uid);
    // What stays after a failure expires with its bucket.
    await store.removeVerification(run.pod.uid).catch(() => undefined);
  }

  async #step(key: string, tool: StoredTool, context: RerunContext, signal: AbortSignal): Promise<RerunProgress> {
    const { clock } = this.#deps;
    const { attempt } = context.order;
    const failures = this.#failures.get(key);
    if (failures?.attempt === attempt && failures.count >= MAX_FAILURES && failures.notBefore > clock.monotonic()) {
      const next = new Date(clock.now().getTime() + failures.notBefore - clock.monotonic()).toISOString();
      return waiting(
        `${failures.count} runs ended without a result, the last one: ${failures.problem}; the next starts at ${next}`,
      );
    }
    const run = await this.#runOf(key, tool, attempt, signal);
    if (run === undefined) return waiting('waits for a free verifier pod');
    const artifact = await this.#artifact(tool, signal);
    if (artifact === undefined) return waiting('the object was deleted or changed');
    return this.#result(key, run, { tool, artifact, context }, signal);
  }

  /** The run of this attempt: known, found by the label of its pod, or new. */
  async #runOf(key: string, tool: StoredTool, attempt: string, signal: AbortSignal): Promise<Run | undefined> {
    const { verifierPods, clock } = this.#deps;
    const { namespace } = tool.metadata;
    const known = this.#runs.get(key);
    if (known?.attempt === attempt) return known;
    if (known !== undefined) await this.release(key);
    this.#waiting.add(key);
    const pod = this.#podOf(attempt) ?? podRef(await verifierPods.claim({ key, namespace, attempt }, signal));
    if (pod === undefined) return undefined;
    verifierPods.use(pod.uid, namespace);
    const run = { attempt, pod, startedAt: clock.monotonic() };
    this.#runs.set(key, run);
    return run;
  }

  async #result(
    key: string,
    run: Run,
    found: { tool: StoredTool; artifact: ToolArtifact; context: RerunContext },
    signal: AbortSignal,
  ): Promise<RerunProgress> {
    const { store, clock, verifierPods } = this.#deps;
    const { tool, artifact, context } = found;
    const problem = verifierPods.problemOf(run.pod);
    const work = await store.work(run.pod.uid, 0);
    if (work === undefined && problem === undefined) {
      const missing = await this.#assign(run, found, signal);
      return waiting(missing ?? `its tests run again in pod ${run.pod.name}`);
    }
    const sent = work === undefined ? undefined : await store.outputs(run.pod.uid, 0);
    if (work !== undefined && sent !== undefined) {
      const result = rerunResult(
        { artifact, order: context.order, withInputs: runsInputs(tool, context.order), rules: context.rules },
        work,
        sent,
      );
      if (result.kind === 'unusable') return this.#retry(key, run, result.problem);
      const verifiedAt = clock.now().toISOString();
      const verification = { ...result.verification, verifiedAt, observedGeneration: tool.metadata.generation };
      return { kind: 'ended', verification, problem: result.problem };
    }
    const isLate = clock.monotonic() - run.startedAt > TIMEOUT_MS;
    if (problem !== undefined || isLate) return this.#retry(key, run, problem ?? 'the pod sent no outputs in time');
    return waiting(`its tests run again in pod ${run.pod.name}`);
  }

  /** Gives the pod its work, which is stored before the pod gets it. Returns what is missing. */
  async #assign(
    run: Run,
    { tool, artifact, context }: { tool: StoredTool; artifact: ToolArtifact; context: RerunContext },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { store, client } = this.#deps;
    const owner = { namespace: tool.metadata.namespace, name: tool.facts.agent ?? '' };
    const { artifacts, missing } = await readDependencies(client, owner, artifact, signal);
    if (missing.length > 0) return missing.join('; ');
    const inputs = await this.#inputs(tool, context);
    const work = verificationWork({ tool: { artifact }, attempt: run.attempt }, inputs, artifacts);
    await store.assign(run.pod.uid, 0, work as unknown as Json);
    return undefined;
  }

  async #inputs(stored: StoredTool, { order, agentUids, rules }: RerunContext): Promise<RecordedInput[]> {
    const { facts, metadata } = stored;
    const found: RecordedInput[] = [];
    if (!runsInputs(stored, order)) return found;
    let bytes = MAX_INPUT_BYTES;
    for (const uid of agentUids) {
      const tool = { digest: facts.digest, namespace: metadata.namespace };
      const recorded = await this.#deps.store.recordedInputs(uid, tool, bytes);
      found.push(...admissibleInputs(recorded, facts.tier, rules));
      bytes -= recorded.reduce((sum, { input, recording }) => sum + bytesOf({ input, recording }), 0);
    }
    return found.slice(0, MAX_INPUTS);
  }

  /** A pod that gave no result is replaced; after three of them the tool waits an hour. */
  async #retry(key: string, { attempt }: Run, problem: string): Promise<RerunProgress> {
    const before = this.#failures.get(key);
    const earlier = before?.attempt === attempt && before.count < MAX_FAILURES ? before.count : 0;
    const failures = {
      attempt,
      count: earlier + 1,
      problem: printable(problem, 300),
      notBefore: this.#deps.clock.monotonic() + COOL_DOWN_MS,
    };
    await this.release(key);
    this.#failures.set(key, failures);
    this.#waiting.add(key);
    return { kind: 'waiting', message: `the run starts again: ${failures.problem}`, retryMs: 0 };
  }

  #podOf(attempt: string): Run['pod'] | undefined {
    const { verifierPods } = this.#deps;
    const usable = verifierPods.pods().map((pod) => ({ pod, ref: podRef(pod) }));
    return usable.find(
      ({ pod, ref }) =>
        pod.metadata.labels?.[LABELS.verification] === attempt &&
        ref !== undefined &&
        verifierPods.problemOf(ref) === undefined,
    )?.ref;
  }

  /** Undefined when the object is not the one that was planned. */
  async #artifact({ metadata, facts }: StoredTool, signal: AbortSignal): Promise<ToolArtifact | undefined> {
    const { namespace, name, uid } = metadata;
    const found = await this.#deps.client.get<KubeObject & EmergentTool>(
      TYPES.emergentTools,
      { namespace, name },
      signal,
    );
    if (found?.metadata.uid !== uid || artifactDigest(found.spec.artifact) !== facts.digest) return undefined;
    return found.spec.artifact;
  }
}

function keyOf({ metadata }: StoredTool): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function podRef(pod: Pod | undefined): Run['pod'] | undefined {
  const { name, uid } = pod?.metadata ?? {};
  return name === undefined || uid === undefined ? undefined : { name, uid };
}

function waiting(message: string): RerunProgress {
  return { kind: 'waiting', message, retryMs: WAIT_MS };
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
