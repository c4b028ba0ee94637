import { openAudit } from '../audit/recorded-trail.ts';
import { builtInDescriptors, builtInNames } from '../engine/built-in.ts';
import { createToolViews } from '../engine/tool-views.ts';
import { createForgeReview } from '../forge/review.ts';
import type { ToolCandidate, ForgeCaller, ForgeResult, RefusedTool } from '../forge/types.ts';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import type { Model } from '../models/port.ts';
import { createDecider } from '../policy/decider.ts';
import { createJudge } from '../tempering/judge/judge.ts';
import { openRegistry, type Registry } from '../tempering/registry/registry.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { Tool } from '../tools/contract.ts';
import type { EventSink, StampedEvent } from '../tools/events.ts';
import { deniedHostCalls } from '../tools/host/host-calls.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import type { Assignment } from '../gateway-api/pod-api.ts';

type ReviewCaller = Pick<ForgeCaller, 'session' | 'rootMessage' | 'authorModel'>;

const notExecuted = (): Promise<never> => Promise.reject(new Error('a gateway executes no tool'));

/** The review of forged tools for one agent, with an in-memory registry. */
export class ReviewDouble {
  assignment: Assignment | undefined;
  readonly #model: Model;
  readonly #registry: Registry;
  readonly #onEvent: (event: StampedEvent) => void;

  private constructor(model: Model, registry: Registry, onEvent: (event: StampedEvent) => void) {
    this.#model = model;
    this.#registry = registry;
    this.#onEvent = onEvent;
  }

  static async open(model: Model, onEvent: (event: StampedEvent) => void): Promise<ReviewDouble> {
    const records = memoryRecordStore();
    const audit = await openAudit({ records, clock: systemClock });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: builtInNames() });
    return new ReviewDouble(model, registry, onEvent);
  }

  tools(session: string): RegisteredTool[] {
    const { name, namespace } = this.#assigned().agent;
    return this.#registry.resolve(name, namespace, session);
  }

  submit(candidate: ToolCandidate, caller: ReviewCaller, op: CallOptions): Promise<ForgeResult> {
    const { policy, models, agent } = this.#assigned();
    const { judge: alias } = policy.spec.models ?? {};
    const judgeModel = alias === undefined ? undefined : (models[alias]?.resolved ?? alias);
    const judge = createJudge({
      model: this.#model,
      judgeModel,
      clock: systemClock,
      nonce: () => ulids.next('nonce'),
    });
    const review = createForgeReview({ judge, sessionTools: this.#registry, context: () => this.#context(caller) });
    return review.submit(candidate, { ...caller, agent: agent.name, namespace: agent.namespace }, op);
  }

  async reject(refused: RefusedTool, caller: ReviewCaller): Promise<void> {
    const { name: agent, namespace } = this.#assigned().agent;
    await this.#registry.recordRejected(refused, { ...caller, agent, namespace });
  }

  #context(caller: ReviewCaller) {
    const { agent, policy, level } = this.#assigned();
    const decider = createDecider({ agent, policy, level, tainted: false, workspace: '/workspace' });
    const builtIn: Tool[] = builtInDescriptors().map((descriptor) => ({ descriptor, call: notExecuted }));
    const forged = {
      sandbox: { run: notExecuted },
      clock: systemClock,
      schemas: createSchemaCompiler(),
      hostCalls: () => deniedHostCalls,
    };
    const views = createToolViews({ tools: this.#registry, builtIn, forged });
    const { session, rootMessage } = caller;
    const events: EventSink = (event) =>
      this.#onEvent({ ...event, time: new Date().toISOString(), agent: agent.name, session, rootMessage });
    return { decider, view: views({ agent: agent.name, namespace: agent.namespace, session }), events };
  }

  #assigned(): Assignment {
    if (this.assignment === undefined) throw new Error('no agent is assigned');
    return this.assignment;
  }
}
