import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Tool } from '../tools/contract.ts';
import type { CompletedCall } from '../tools/invoker.ts';
import type { Background } from './background.ts';
import type { TemperingElsewhere, TemperingHere } from './ports.ts';
import { Rise } from './rise.ts';
import { createTempering } from './tempering.ts';
import { useOf } from './tool-use.ts';
import type { Workshop } from './workshop.ts';

/** What becomes of forged tools after they were accepted. */
export interface Keeping {
  observe(call: CompletedCall): void;
  demote(digest: Digest, reason: string, actor: string): Promise<void>;
  /** Takes up what waited for a person when the last process ended. */
  resume(): Promise<void>;
}

export function keepHere(
  workshop: Workshop,
  here: TemperingHere,
  builtIn: readonly Tool[],
  background: Background,
): Keeping {
  const { agent, decider, ports } = workshop;
  const { registry } = here;
  const tempering = createTempering(workshop, here, builtIn);
  const rise = new Rise({ agent, decider, registry, ...tempering, background, clock: ports.clock });
  return {
    observe: (call) => rise.observe(call),
    demote: (digest, reason, actor) => tempering.demotion.demote(digest, reason, actor),
    resume: () => rise.resume(),
  };
}

/** Uses are told; nothing else about a tool is for this engine to decide. */
export function keepElsewhere(elsewhere: TemperingElsewhere, clock: Clock): Keeping {
  return {
    observe(call) {
      const use = useOf(call, 'claimed', clock);
      if (use !== undefined) elsewhere.claimUse(use);
    },
    demote: () =>
      Promise.reject(
        new TemperError('TEMPER_POLICY_DENIED', 'tools are not taken out of service here; ask who keeps them'),
      ),
    resume: async () => undefined,
  };
}
