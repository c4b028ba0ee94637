import { isPlatformSubject, PLATFORM_TOKEN, subjectError, subjectPatternError } from '../../events/subject.ts';
import { includes, newSearchBudget } from '../patterns/pattern-containment.ts';
import { compilePattern } from '../patterns/pattern.ts';
import type { PreparedPolicy } from '../prepare.ts';
import { taintedRule } from './common.ts';
import { allowed, deny, passed } from './rule.ts';
import type { RequestOf, Rule } from './rule.ts';

export function publishRules(prepared: PreparedPolicy): Rule<RequestOf<'Publish'>>[] {
  const { publish, snapshot } = prepared;
  const { name } = snapshot.agent;
  return [
    taintedRule<RequestOf<'Publish'>>(prepared, 'message'),
    {
      id: 'event.subject',
      check: ({ subject }) => {
        const error = subjectError(subject);
        if (error !== undefined) return deny(`"${subject}" is not a subject of an event: ${error}.`);
        if (!isPlatformSubject(subject)) return undefined;
        return deny(`Only Temper publishes events below "${PLATFORM_TOKEN}"; use a subject with another first token.`);
      },
      explain: () => passed('it is a subject that agents may have'),
    },
    {
      id: 'grant.events.publish',
      check: ({ subject }) =>
        publish.has(subject)
          ? undefined
          : deny(`Agent "${name}" may not publish "${subject}": grants.events.publish allows ${publish.describe()}.`),
      explain: ({ subject }) => allowed(`granted by grants.events.publish "${publish.find(subject)}"`),
    },
  ];
}

export function subscribeRules({ subscribe, snapshot }: PreparedPolicy): Rule<RequestOf<'Subscribe'>>[] {
  return [
    {
      id: 'event.subject',
      check: ({ pattern }) => {
        const error = subjectPatternError(pattern);
        return error === undefined
          ? undefined
          : deny(`"${pattern}" is not a pattern for subjects of events: ${error}.`);
      },
      explain: () => passed('it is a pattern for subjects'),
    },
    {
      id: 'grant.events.subscribe',
      check: ({ pattern }) =>
        includes(subscribe.patterns, compilePattern(pattern, 'event'), newSearchBudget())
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not subscribe to "${pattern}": grants.events.subscribe allows ${subscribe.describe()}.`,
            ),
      explain: () => allowed(`within grants.events.subscribe ${subscribe.describe()}`),
    },
  ];
}
