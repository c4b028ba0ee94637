import { LABELS } from '../../../api/cluster.ts';
import type { EmergentTool, ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { builtInDescriptors, builtInNames } from '../../../engine/built-in.ts';
import type { ExternalTool } from '../../../engine/explain/types.ts';
import { forgedDescriptor } from '../../../forge/forged-tool.ts';
import { parseArtifact } from '../../../forge/parse-artifact.ts';
import { splitReference } from '../../../forge/request.ts';
import type { Digest } from '../../../lib/canonical.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import { isVisible, type ToolOwner } from '../../../tempering/registry/visibility.ts';
import { openRegistry } from '../../../tempering/registry/registry.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';
import type { CliIo } from '../../io.ts';
import { stateFolder } from '../../state/state-folder.ts';

/** A forged tool of the agent of a question. */
export interface ForgedTool {
  artifact: ToolArtifact;
  digest: Digest;
  tier: 'Session' | 'Agent' | 'Shared';
  /** The session that forged it; absent for a tool of all sessions. */
  session?: string | undefined;
  /** Why no call finds it; absent for one in service. */
  inactive?: string | undefined;
}

/** The forged tools that an agent may find in a state folder; none where no run was. `session`: only what that session sees. */
export async function storedTools(
  state: string,
  { agent, namespace, session }: ToolOwner & { session?: string | undefined },
  io: CliIo,
): Promise<ForgedTool[]> {
  const folder = await existingState(state, io);
  if (folder === undefined) return [];
  const records = fileRecordStore(folder);
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: builtInNames() });
  const own = registry.all().filter((tool) => {
    const scope = { agent, namespace, session: session ?? tool.owner.session };
    return isVisible(tool, scope);
  });
  return own.map((tool) => forgedTool(tool, registry.resolve(agent, namespace, session ?? tool.owner.session)));
}

async function existingState(state: string, io: CliIo): Promise<string | undefined> {
  try {
    return await stateFolder(io, state);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_STATE_NOT_FOUND')) return undefined;
    throw error;
  }
}

function forgedTool(tool: RegisteredTool, inService: readonly RegisteredTool[]): ForgedTool {
  const { artifact, digest, tier, owner, inactiveReason = 'it is not in service for this agent' } = tool;
  return {
    artifact,
    digest,
    tier,
    ...(tier === 'Session' ? { session: owner.session } : {}),
    ...(inService.includes(tool) ? {} : { inactive: inactiveReason }),
  };
}

/** The EmergentTools that the pod of an agent may find. An object without a status is one that the operator has not seen. */
export function objectTools(objects: readonly EmergentTool[], agent: string): ForgedTool[] {
  return objects.flatMap(({ metadata, spec, status }): ForgedTool[] => {
    const { artifact, tier } = spec;
    if (tier === 'Agent' && metadata.labels?.[LABELS.agent] !== agent) return [];
    const condition = status?.conditions?.find(({ type }) => type === 'Active');
    const inactive =
      status?.active === false ? (condition?.message ?? 'the operator took it out of service') : undefined;
    return [{ artifact, digest: spec.digest as Digest, tier, inactive }];
  });
}

/** The tool as a call has it, first, and the other forged tools of a session that has it, which its steps may call. */
export function described(tool: ForgedTool, all: readonly ForgedTool[]): [ExternalTool, ...ExternalTool[]] {
  const isSeen = ({ session, inactive }: ForgedTool): boolean =>
    inactive === undefined && (session === undefined || tool.session === undefined || session === tool.session);
  const others = all.filter((one) => isSeen(one) && one.artifact.name !== tool.artifact.name);
  const external = (one: ForgedTool): ExternalTool => externalTool(one, [tool, ...others]);
  return [external(tool), ...others.map(external)];
}

function externalTool({ artifact, digest, tier }: ForgedTool, seen: readonly ForgedTool[]): ExternalTool {
  const parsed = parseArtifact(artifact);
  const steps = 'malformed' in parsed ? undefined : parsed.plan?.steps;
  return {
    descriptor: descriptorOf({ artifact, digest, tier }, seen),
    requests: [],
    requires: artifact.requires,
    steps,
  };
}

/** A composed tool has side effects if its steps have. Digests exclude cyclic calls, but not cyclic names. */
function descriptorOf(
  { artifact, digest, tier }: Pick<ForgedTool, 'artifact' | 'digest' | 'tier'>,
  seen: readonly ForgedTool[],
): ToolDescriptor {
  const others = seen.filter((one) => one.digest !== digest);
  return forgedDescriptor(artifact, digest, tier, {
    describe(name) {
      const other = others.find((one) => one.artifact.name === name);
      return builtInDescriptors().find((one) => one.name === name) ?? (other && descriptorOf(other, others));
    },
  });
}

/** The tools of a name, or of `name@digest`. */
export function named(tools: readonly ForgedTool[], reference: string): ForgedTool[] {
  const { name, digest } = splitReference(reference);
  return tools.filter((tool) => tool.artifact.name === name && (digest === undefined || tool.digest === digest));
}
