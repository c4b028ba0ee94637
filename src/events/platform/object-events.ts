import { sha256 } from '../../lib/canonical.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { PublishedEvent } from '../event.ts';
import type { ObjectFact, ObjectIdentity, ObservedRecord } from './observed-object.ts';
import { PLATFORM_SUBJECTS, type PlatformSubject } from './subjects.ts';

/** What is stored about an object before a change, and the revision of that document. */
interface Before {
  readonly record: ObservedRecord | undefined;
  readonly revision: number;
}

export interface ObservedObject {
  readonly object: ObjectIdentity;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly facts: readonly ObjectFact[];
}

interface ObjectChange {
  readonly events: readonly PublishedEvent[];
  readonly record: ObservedRecord;
}

/** What an object that is older than this was before it was first seen is no event. So a lost store, or the first start, repeats nothing. */
const MAX_FIRST_AGE_MS = 3_600_000;

/**
 * The events that an object causes beyond what is stored about it, and what to store when they are published. Undefined: nothing changed.
 * The id of an event derives from the stored document, so a process that ends between the two publishes the same event again. Pure.
 */
export function objectChange(
  before: Before,
  { object, createdAt, facts }: ObservedObject,
  now: Date,
): ObjectChange | undefined {
  const values = before.record?.values ?? {};
  const changed = facts.filter(({ name, value }) => values[name] !== value);
  if (changed.length === 0) return undefined;
  const isOld = before.record === undefined && now.getTime() - createdAt > MAX_FIRST_AGE_MS;
  const events = isOld
    ? []
    : changed.flatMap(({ name, event }) =>
        event === undefined || (event.after !== undefined && event.after !== values[name])
          ? []
          : eventOf(object, event, before.revision, now),
      );
  const after = Object.fromEntries(changed.map(({ name, value }) => [name, value]));
  return { events, record: { object, values: { ...values, ...after } } };
}

/** The events of an object that is gone. Pure. */
export function goneEvents({ object, values }: ObservedRecord, revision: number, now: Date): PublishedEvent[] {
  const { kind, name, agent, parent, tool, namespace } = object;
  const of = (subject: PlatformSubject, data: JsonObject): PublishedEvent =>
    eventOf(object, { subject, data }, revision, now);
  switch (kind) {
    case 'Agent':
      return [
        of(PLATFORM_SUBJECTS.agentTerminated, { agent, ...(parent === undefined ? {} : { parent }) }),
        ...(parent === undefined ? [] : [of(PLATFORM_SUBJECTS.childEnded, { agent: parent, child: agent })]),
      ];
    case 'EmergentTool':
      if (values['service'] !== IN_SERVICE) return [];
      return [
        of(PLATFORM_SUBJECTS.toolDemoted, { agent, tool: tool ?? '', object: name, namespace, reason: 'Deleted' }),
      ];
    case 'ApprovalRequest':
      return [];
  }
}

/** The value of the fact `service` of a tool that agents can call. */
export const IN_SERVICE = 'True';

function eventOf(
  { uid, agent }: ObjectIdentity,
  { subject, data }: { subject: PlatformSubject; data: JsonObject },
  revision: number,
  now: Date,
): PublishedEvent {
  const hash = sha256(`${uid}\n${subject}\n${revision}\n${JSON.stringify(data)}`);
  return {
    id: `evt-${hash.slice('sha256:'.length, 'sha256:'.length + 32)}`,
    subject,
    data,
    source: 'Platform',
    agent,
    time: now.toISOString(),
    tainted: false,
  };
}
