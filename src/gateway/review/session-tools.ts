import type { AcceptedTool, ForgeCaller, SessionToolRegistry } from '../../forge/types.ts';
import type { Audit } from '../../audit/port.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import { sessionTool } from '../../tempering/registry/registered-tool.ts';
import { rejectionRecord } from '../../tempering/registry/rejected-attempts.ts';
import { assertCanActivate, type ToolLimits } from '../../tempering/registry/visibility.ts';
import { recordActivation } from '../../tempering/registry/tool-store.ts';
import type { RegisteredTool } from '../../tempering/types.ts';

export interface GatewayToolsDeps {
  agentUid: string;
  registry: SessionRegistry;
  audit: Audit;
  clock: Clock;
  /** Names that forged tools must not use. */
  builtIn: ReadonlySet<string>;
  limits: ToolLimits;
  /** Why a tool is out of service; undefined when it is in service. */
  demoted: (digest: Digest) => string | undefined;
  /** `observed`: the gateway refused the tool. `reported`: the pod reports that it refused it. */
  evidence: 'observed' | 'reported';
}

export interface GatewayTools extends SessionToolRegistry {
  /** Writes the audit record of an accepted tool. */
  recordAccepted(tool: RegisteredTool, caller: ForgeCaller): Promise<void>;
}

/** Session tools of one agent, stored in NATS for all replicas of the gateway. */
export function gatewaySessionTools(deps: GatewayToolsDeps): GatewayTools {
  const recordAccepted = (tool: RegisteredTool, { agent }: ForgeCaller): Promise<void> =>
    recordActivation(deps.audit, tool, {
      action: 'tool.accepted',
      actor: `agent/${agent}`,
      supersedes: [],
      policyRevision: deps.limits.policyRevision,
    });
  return {
    recordAccepted,
    async register(accepted: AcceptedTool, caller: ForgeCaller) {
      const tool = sessionTool(accepted, caller, deps.clock.now().toISOString());
      assertNotDemoted(tool, deps);
      const { builtIn, limits } = deps;
      await deps.registry.register(deps.agentUid, tool, (actives) =>
        assertCanActivate(tool, actives, { builtIn, limits, replaces: [] }),
      );
      await recordAccepted(tool, caller);
    },
    recordRejected: (refused, caller) => deps.audit.append(rejectionRecord(refused, caller, deps.evidence)),
  };
}

function assertNotDemoted({ digest }: RegisteredTool, { demoted }: GatewayToolsDeps): void {
  const reason = demoted(digest);
  if (reason === undefined) return;
  throw new TemperError(
    'TEMPER_TOOL_DEMOTED',
    `this tool was ${printable(reason, 500)}; forge a corrected version; these bytes cannot be registered again`,
  );
}
