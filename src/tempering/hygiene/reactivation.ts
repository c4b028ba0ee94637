import type { Audit } from '../../audit/port.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { EventSink } from '../../tools/events.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { testFailureMessage } from '../promotion/promotion-messages.ts';
import type { Registry } from '../registry/registry.ts';
import type { ToolLimits, ToolOwner } from '../registry/visibility.ts';
import type { Verifier } from '../types.ts';
import { reverify } from '../verification/reverify.ts';

/** Brings deactivated tools back, by the decision of a user. */
export interface Reactivation {
  /** A failed verification, and a name that is taken meanwhile, are an event and a record: the tool stays deactivated. */
  reactivate(order: { digest: Digest; reason: string; actor: string }, signal: AbortSignal): Promise<void>;
}

export interface ReactivationDeps {
  readonly registry: Registry;
  readonly verifier: Verifier;
  readonly schemas: SchemaCompiler;
  readonly events: EventSink;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly owner: ToolOwner;
  limits(): ToolLimits;
  /** The success rate of the re-runs must be above it. */
  minSuccessPercent(): number;
}

const VERIFICATION_TIMEOUT_MS = 5 * 60_000;

export function createReactivation(deps: ReactivationDeps): Reactivation {
  const { registry, owner } = deps;
  const verify = async (digest: Digest, signal: AbortSignal): Promise<void> => {
    const tool = registry.get(digest);
    // A tool whose session was closed passes all gates again when it is forged.
    if (tool === undefined) return;
    const op = { signal, deadline: deps.clock.monotonic() + VERIFICATION_TIMEOUT_MS, key: digest };
    const figures = await reverify(tool, await registry.recordedInputs(digest, owner.namespace), deps, op);
    const reason =
      figures.failedTests > 0
        ? testFailureMessage(figures)
        : `${figures.reruns - figures.successes} of ${figures.reruns} recorded uses fail again`;
    const mayFail = figures.reruns * (1 - deps.minSuccessPercent() / 100);
    const failed = figures.reruns - figures.successes;
    if (figures.failedTests > 0 || (failed > 0 && failed >= mayFail))
      throw new TemperError('TEMPER_PROMOTION_NOT_READY', `${reason}; forge a corrected version`);
  };
  return {
    async reactivate({ digest, reason, actor }, signal) {
      const tool = registry.get(digest)?.artifact.name ?? 'unknown';
      try {
        await verify(digest, signal);
        await registry.reactivate(digest, owner, { reason, actor, limits: deps.limits() });
      } catch (error) {
        const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
        const message = `"${tool}" stays deactivated: ${messageOf(error, 300)}`;
        const facts = { tool, ...owner, code, message };
        await deps.audit.append({
          action: 'tool.reactivation-refused',
          actor,
          evidence: 'observed',
          subject: digest,
          facts,
        });
        deps.events({ type: 'warning', code, message });
      }
    },
  };
}
