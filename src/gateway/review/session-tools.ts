import type { AcceptedTool, ForgeCaller, SessionToolRegistry } from '../../forge/types.ts';
import type { Audit } from '../../audit/port.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import { sessionTool } from '../../tempering/registry/registered-tool.ts';
import { rejectionRecord } from '../../tempering/registry/rejected-attempts.ts';
import { assertCanActivate, isReplacedBy, type ToolLimits } from '../../tempering/registry/visibility.ts';
import { recordActivation, recordDrop } from '../../tempering/registry/tool-store.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { refusalWithoutWords, toolWithoutWords } from '../../tempering/withheld/without-words.ts';

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
  /** Deletes the uses of a digest that no session of the agent has any more. */
  removeEvidence: (digest: Digest) => Promise<void>;
  /** `observed`: the gateway refused the tool. `reported`: the pod reports that it refused it. */
  evidence: 'observed' | 'reported';
  /** Whether the agent withholds the sources of its tools. */
  withholds: boolean;
}

export interface GatewayTools extends SessionToolRegistry {
  /** Writes the audit record of an accepted tool, and of those that it replaces. */
  recordAccepted(tool: RegisteredTool, caller: ForgeCaller, replaced?: readonly RegisteredTool[]): Promise<void>;
  /** Removes a tool of the session and records it. Idempotent; false when the session does not have it. */
  drop(session: string, digest: Digest): Promise<boolean>;
}

/** Session tools of one agent, stored in NATS for all replicas of the gateway. */
export function gatewaySessionTools(deps: GatewayToolsDeps): GatewayTools {
  const recordAccepted: GatewayTools['recordAccepted'] = (tool, { agent }, replaced = []) =>
    recordActivation(deps.audit, tool, {
      action: 'tool.accepted',
      actor: `agent/${agent}`,
      supersedes: replaced,
      policyRevision: deps.limits.policyRevision,
    });
  return {
    recordAccepted,
    async register(accepted: AcceptedTool, caller: ForgeCaller) {
      const { builtIn, limits, withholds } = deps;
      const registered = sessionTool(accepted, caller, deps.clock.now().toISOString());
      const tool = withholds ? withheldTool(registered) : registered;
      assertNotDemoted(tool, deps);
      const replaced = await deps.registry.register(deps.agentUid, tool, (actives) => {
        const replaces = actives.filter((other) => isReplacedBy(other, tool));
        assertCanActivate(tool, actives, { builtIn, limits, replaces });
        return replaces;
      });
      await recordAccepted(tool, caller, replaced);
      for (const { digest } of replaced) await deps.removeEvidence(digest);
    },
    async drop(session, digest) {
      const dropped = await deps.registry.drop(deps.agentUid, session, digest);
      if (dropped === undefined) return false;
      await recordDrop(deps.audit, dropped);
      await deps.removeEvidence(digest);
      return true;
    },
    recordRejected: (refused, caller) => {
      const recorded = deps.withholds ? refusalWithoutWords(refused) : refused;
      return deps.audit.append(rejectionRecord(recorded, caller, deps.evidence));
    },
  };
}

/** Composed tools have no source; their steps are stored. */
function withheldTool(tool: RegisteredTool): RegisteredTool {
  if (tool.artifact.implementation.source === undefined) return tool;
  return toolWithoutWords({ ...tool, sourceWithheld: true });
}

function assertNotDemoted({ digest }: RegisteredTool, { demoted }: GatewayToolsDeps): void {
  const reason = demoted(digest);
  if (reason === undefined) return;
  throw new TemperError(
    'TEMPER_TOOL_DEMOTED',
    `this tool was ${printable(reason, 500)}; forge a corrected version; these bytes cannot be registered again`,
  );
}
