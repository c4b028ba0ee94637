import { Type, type Static } from 'typebox';
import { closed, Digest, Text } from '../common.ts';

const Time = (description: string) => Type.String({ format: 'date-time', maxLength: 64, description });

/** Entries of one agent, those that are in service again included. */
export const MAX_DEACTIVATED_TOOLS = 100;

/** A tool that was deactivated for one agent. Written by the operator only. */
const DeactivatedTool = Type.Object(
  {
    digest: { ...Digest, description: 'The digest of the tool.' },
    tool: Text(63, 'The name that models use.'),
    cause: Type.Enum(['Harmful', 'Failing', 'LeastUseful'], {
      description:
        '`Harmful`: tasks that called it ended badly more often than `decay.maxHarmPercent` allows. `Failing`: more of its last uses failed than `decay.maxErrorPercent` allows. `LeastUseful`: the agent had its maximum of tools, and the fewest messages used this one.',
    }),
    message: Text(1_024, 'The figures.'),
    since: Time('The time of the deactivation, in RFC 3339 format.'),
    requestedAt: Type.Optional(
      Time('The time when a user asked to verify the tool again, in RFC 3339 format. Present until its tests ran.'),
    ),
    reactivatedAt: Type.Optional(
      Time(
        'The time when it was verified again, in RFC 3339 format. Later than `since`: the tool is in service for the agent. Earlier tasks do not count for it.',
      ),
    ),
  },
  closed,
);
export type DeactivatedTool = Static<typeof DeactivatedTool>;

export const DeactivatedTools = Type.Array(DeactivatedTool, {
  maxItems: MAX_DEACTIVATED_TOOLS,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['digest'],
  description:
    'Tools that the agent does not have any more, although they are in service for others or were for it. `kubectl temper reactivate` verifies one again.',
});

/** The entry of the digest, when the agent does not have the tool. */
export function deactivationOf(
  tools: readonly DeactivatedTool[] | undefined,
  digest: string,
): DeactivatedTool | undefined {
  const entry = tools?.find((tool) => tool.digest === digest);
  return entry !== undefined && isDeactivated(entry) ? entry : undefined;
}

export function isDeactivated({ since, reactivatedAt }: DeactivatedTool): boolean {
  return reactivatedAt === undefined || Date.parse(reactivatedAt) <= Date.parse(since);
}
