import { subjectPatternError } from '../../events/subject.ts';
import { templateError } from '../../events/template.ts';
import { DEFAULT_FIRES_PER_HOUR, type Trigger } from '../../events/trigger.ts';
import { checkMeasures, itemsOf, quoted } from '../checks/shared.ts';
import { dottedPath, type FieldPath, type Finding, type RuleName, type ValidPart } from '../findings.ts';
import { parseDuration } from '../quantities.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import type { EventTrigger } from '../v1alpha1/schedule/triggers.ts';

type Schedule = ValidPart<NonNullable<AgentSpec['schedule']>>;

const MAX_COOLDOWN_MS = 86_400_000;
const FIX = 'see docs/reference/events.md';

/** The rules of the triggers that a schema cannot state. */
export function triggersAreSound({ triggers }: Schedule, path: FieldPath): Finding[] {
  const names = new Set<string>();
  return [...itemsOf(triggers, [...path, 'triggers'])].flatMap(
    ([{ name, subject, webhook, message, cooldown }, at]) => {
      const isRepeated = name !== undefined && names.has(name);
      if (name !== undefined) names.add(name);
      return [
        ...(isRepeated ? [finding([...at, 'name'], 'duplicate-item', `${quoted(name)} is in the list already`)] : []),
        ...((subject === undefined) === (webhook === undefined)
          ? [finding(at, 'trigger', 'has to have either a subject or a webhook')]
          : []),
        ...errorFinding([...at, 'subject'], subject, subjectPatternError),
        ...errorFinding([...at, 'message'], message, templateError),
        ...checkMeasures([
          {
            path: [...at, 'cooldown'],
            value: cooldown,
            parse: parseDuration,
            minimum: 0,
            maximum: MAX_COOLDOWN_MS,
            allowed: 'a duration up to 24h',
          },
        ]),
      ];
    },
  );
}

function errorFinding(
  path: FieldPath,
  text: string | undefined,
  errorOf: (text: string) => string | undefined,
): Finding[] {
  const error = text === undefined ? undefined : errorOf(text);
  return error === undefined ? [] : [finding(path, 'trigger', `is not valid: ${error}`)];
}

function finding(path: FieldPath, rule: RuleName, text: string): Finding {
  return { path, rule, message: `${dottedPath(path)} ${text}`, fix: FIX };
}

interface ProactiveAgent {
  readonly schedule?: AgentSpec['schedule'] | undefined;
}

/** The triggers of an agent that fire. The spec is valid. */
export function triggersOf({ schedule }: ProactiveAgent): readonly EventTrigger[] {
  if (schedule?.mode !== 'Proactive' || schedule.suspend === true) return [];
  return (schedule.triggers ?? []).filter(({ enabled }) => enabled !== false);
}

export function triggerOf({ name, message, session, maxFires = 0, maxFiresPerHour, cooldown }: EventTrigger): Trigger {
  return {
    key: name,
    template: message,
    session,
    limits: {
      maxFires: maxFires === 0 ? undefined : maxFires,
      maxFiresPerHour: maxFiresPerHour ?? DEFAULT_FIRES_PER_HOUR,
      cooldownMs: cooldown === undefined ? 0 : parseDuration(cooldown),
    },
  };
}
