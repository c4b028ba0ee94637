import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Tool } from '../tools/contract.ts';
import type { CompletedCall } from '../tools/invoker.ts';
import type { Background } from './background.ts';
import type { LifecycleContext, TemperingElsewhere, TemperingHere } from '../tempering/lifecycle/ports.ts';
import { Rise } from './rise.ts';
import { createTempering } from './tempering.ts';
import { useOf } from './tool-use.ts';

/** Lifecycle of accepted forged tools: use records, promotion and demotion. */
export interface Keeping {
  /** Records a finished call of a forged tool; other calls are ignored. */
  observe(call: CompletedCall): void;
  /** Throws TEMPER_POLICY_DENIED when the lifecycle is remote. */
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Resumes promotions that awaited an approval when the previous process ended. */
  resume(): Promise<void>;
}

/** Runs the lifecycle in this process. */
export function keepHere(
  context: LifecycleContext,
  here: TemperingHere,
  builtIn: readonly Tool[],
  background: Background,
): Keeping {
  const { agent, decider, ports } = context;
  const { registry } = here;
  const tempering = createTempering(context, here, builtIn);
  const rise = new Rise({ agent, decider, registry, ...tempering, background, clock: ports.clock });
  return {
    observe: (call) => rise.observe(call),
    demote: (digest, reason, actor) => tempering.demotion.demote(digest, reason, actor),
    resume: () => rise.resume(),
  };
}

/** Reports uses to the gateway, which runs the lifecycle; this engine neither promotes nor demotes. */
export function keepElsewhere(elsewhere: TemperingElsewhere, clock: Clock): Keeping {
  return {
    observe(call) {
      const use = useOf(call, 'claimed', clock);
      if (use !== undefined) elsewhere.claimUse(use);
    },
    demote: () =>
      Promise.reject(
        new TemperError('TEMPER_POLICY_DENIED', 'this engine cannot demote tools; the gateway manages their lifecycle'),
      ),
    resume: async () => undefined,
  };
}
