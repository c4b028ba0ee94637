import type { FieldPath } from '../../../api/findings.ts';
import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import { PLATFORM_SUBJECTS, type PlatformSubject } from '../../../events/platform/subjects.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import type { ImportLog } from '../keys/import-log.ts';
import { textAt, textsAt, valueAt } from '../source/source-values.ts';

type Triggers = NonNullable<NonNullable<AgentSpec['schedule']>['triggers']>;
type Trigger = Triggers[number];

const CONDITIONS: FieldPath = ['schedule', 'proactive', 'conditions'];
const TRIGGERS: FieldPath = ['schedule', 'triggers'];
const MAX_TRIGGERS = 16;
const MAX_PATTERN = 256;
const MESSAGE =
  'The event {{subject}} is about agent {{agent}}: {{event}}. Look at what it means for you, and do what is due.';

/** The events of OpenFang that Temper publishes. */
const SUBJECTS: ReadonlyMap<string, PlatformSubject | 'temper.agent.*' | 'temper.>'> = new Map([
  ['agent_spawned', PLATFORM_SUBJECTS.agentRunning],
  ['agent_terminated', PLATFORM_SUBJECTS.agentTerminated],
  ['file_created', PLATFORM_SUBJECTS.fileCreated],
  ['lifecycle', 'temper.agent.*'],
  ['system', 'temper.>'],
]);
const OWN_EVENTS = 'events of one namespace, of agents and tools of Temper';

/** The triggers of an agent, in the form of OpenFang's program (`conditions`) or of its documentation (`triggers`). */
export function importTriggers(source: JsonObject, log: ImportLog): Triggers {
  const triggers: Trigger[] = [];
  for (const { path, text } of textsAt(source, CONDITIONS, log))
    addTrigger(triggers, { path, event: text.replace(/^event:/, ''), value: text }, log);
  const documented = valueAt(source, TRIGGERS);
  if (documented === undefined) return triggers;
  if (!Array.isArray(documented)) log.invalid(TRIGGERS, documented, 'a list of tables');
  else
    for (const [index, item] of documented.entries())
      addDocumented(triggers, [...TRIGGERS, index], item, { source, log });
  return triggers;
}

function addDocumented(
  triggers: Trigger[],
  path: FieldPath,
  item: Json,
  { source, log }: { source: JsonObject; log: ImportLog },
): void {
  if (!isJsonObject(item)) return log.invalid(path, item, 'a table');
  const event = textAt(source, [...path, 'event'], log);
  if (event === undefined) return;
  const added = addTrigger(triggers, { path: [...path, 'event'], event, value: event }, log);
  const pattern = textAt(source, [...path, 'pattern'], log);
  if (pattern === undefined) return;
  if (added === undefined || pattern.length > MAX_PATTERN || /\{\{|\}\}/.test(pattern)) {
    return log.add([...path, 'pattern'], 'NotImported', { value: pattern, note: 'no trigger has this pattern' });
  }
  const index = triggers.indexOf(added);
  triggers[index] = { ...added, message: `${MESSAGE} Leave out what does not match ${JSON.stringify(pattern)}.` };
  log.add([...path, 'pattern'], 'Changed', {
    value: pattern,
    field: `spec.schedule.triggers[${index}].message`,
    note: 'a trigger has no pattern for data: it fires for each event, and its message asks the agent to leave out others',
  });
}

interface WantedTrigger {
  readonly path: FieldPath;
  readonly event: string;
  readonly value: string;
}

function addTrigger(triggers: Trigger[], { path, event, value }: WantedTrigger, log: ImportLog): Trigger | undefined {
  const subject = SUBJECTS.get(event);
  if (subject === undefined) {
    const note = 'Temper publishes no such event; an agent can, with event_publish';
    log.add(path, 'NotImported', { value, note });
    return undefined;
  }
  if (triggers.length >= MAX_TRIGGERS) {
    log.add(path, 'NotImported', { value, note: `an agent has at most ${MAX_TRIGGERS} triggers` });
    return undefined;
  }
  const added = { name: `trigger-${triggers.length + 1}`, subject, message: MESSAGE };
  const field = `spec.schedule.triggers[${triggers.length}].subject`;
  log.add(path, 'Changed', { value, field, note: `as ${subject}: ${OWN_EVENTS}` });
  triggers.push(added);
  return added;
}
