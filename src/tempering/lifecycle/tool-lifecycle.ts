import { parseDuration } from '../../api/quantities.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Tool } from '../../tools/contract.ts';
import { isForgeTestCall } from '../../tools/forge-test-call.ts';
import { isHookCall } from '../../tools/hooks/call-hooks.ts';
import type { CompletedCall } from '../../tools/invoker.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { LifecycleContext, RemoteLifecyclePorts, LocalLifecyclePorts } from './ports.ts';
import { Reverification } from './reverification.ts';
import { ToolPromotion } from './tool-promotion.ts';
import { createPromotionAndDemotion } from './promotion-and-demotion.ts';
import { toToolUse } from '../use/tool-use.ts';

/** Lifecycle of accepted forged tools: use records, promotion and demotion. */
export interface ToolLifecycle {
  /** Records a finished call. */
  observe(call: CompletedCall): void;
  /** Throws TEMPER_POLICY_DENIED when the lifecycle is remote. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Verifies a deactivated tool again and reactivates it; reports a failure as an event. Throws as `demote` does. */
  reactivate(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Resumes promotions that awaited an approval when the previous process ended, and starts the scheduled runs of tests. */
  resume(): Promise<void>;
}

const REMOTE = 'this engine cannot demote or reactivate tools; the gateway manages their lifecycle';

/** Runs the lifecycle in this process. */
export function createLocalLifecycle(
  context: LifecycleContext,
  here: LocalLifecyclePorts,
  builtIn: readonly Tool[],
  background: BackgroundTasks,
): ToolLifecycle {
  const { agent, decider, ports } = context;
  const { registry } = here;
  const tempering = createPromotionAndDemotion(context, here, builtIn);
  const owner = { agent: agent.name, namespace: agent.namespace };
  const { reverifyEvery } = agent.policy.spec.decay ?? {};
  const reverification =
    reverifyEvery === undefined
      ? undefined
      : new Reverification({
          registry,
          demotion: tempering.demotion,
          background,
          clock: ports.clock,
          events: context.events,
          owner,
          everyMs: parseDuration(reverifyEvery),
        });
  const toolPromotion = new ToolPromotion({ agent, decider, registry, ...tempering, background, clock: ports.clock });
  return {
    observe(call) {
      const { tool, caller, result } = call;
      const isOfAgent = !isHookCall(caller) && !isForgeTestCall(caller);
      if (isOfAgent && result.ok) here.onSucceeded?.(tool.category, caller.session);
      const isOwn = caller.stack.length === 0 && !isHookCall(caller);
      if (tool.forged !== undefined && isOwn) here.onUse?.(tool.forged.digest, caller.session);
      toolPromotion.observe(call);
    },
    reactivate: (digest, reason, actor) =>
      tempering.reactivation.reactivate({ digest, reason, actor }, background.signal),
    demote: (digest, reason, actor) => tempering.demotion.demote(digest, reason, actor),
    async resume() {
      await toolPromotion.resume();
      reverification?.start();
    },
  };
}

/** Reports uses to the gateway, which runs the lifecycle; this engine neither promotes nor demotes. */
export function createRemoteLifecycle(elsewhere: RemoteLifecyclePorts, clock: Clock): ToolLifecycle {
  return {
    observe(call) {
      const use = toToolUse(call, 'reported', clock);
      if (use === undefined) return;
      elsewhere.reportUse(use);
      if (call.caller.stack.length === 0) elsewhere.onCall?.(use.digest, use.succeeded);
    },
    demote: () => Promise.reject(new TemperError('TEMPER_POLICY_DENIED', REMOTE)),
    reactivate: () => Promise.reject(new TemperError('TEMPER_POLICY_DENIED', REMOTE)),
    resume: async () => undefined,
  };
}
