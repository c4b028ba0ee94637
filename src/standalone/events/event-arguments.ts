import type { SubscriptionDraft } from '../../events/subscription.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';

/** The arguments of `event_publish`. */
export interface EventDraft {
  readonly subject: string;
  readonly data: Json;
  readonly to?: string;
  readonly ttlSeconds?: number;
}

/** Reads arguments that the schema of `event_publish` accepts. Throws TEMPER_TOOL_INPUT_INVALID. */
export function eventDraft(input: Json): EventDraft {
  const members = objectOf(input);
  const { data = null } = members;
  return { subject: subjectOf(members), data, ...textsOf(members, ['to']), ...numbersOf(members, ['ttlSeconds']) };
}

/** Reads arguments that the schema of `event_subscribe` accepts. Throws TEMPER_TOOL_INPUT_INVALID. */
export function subscriptionDraft(input: Json): SubscriptionDraft {
  const members = objectOf(input);
  const numbers = numbersOf(members, ['maxFires', 'ttlSeconds']);
  return { subject: subjectOf(members), ...textsOf(members, ['message']), ...numbers };
}

function objectOf(input: Json): JsonObject {
  if (isJsonObject(input)) return input;
  throw invalid('the arguments are not an object');
}

function subjectOf({ subject }: JsonObject): string {
  if (typeof subject === 'string') return subject;
  throw invalid('subject has to be a text');
}

function textsOf(members: JsonObject, names: readonly string[]): { [name: string]: string } {
  return Object.fromEntries(
    names.flatMap((name): [string, string][] => {
      const value = members[name];
      if (value === undefined) return [];
      if (typeof value === 'string') return [[name, value]];
      throw invalid(`${name} has to be a text`);
    }),
  );
}

function numbersOf(members: JsonObject, names: readonly string[]): { [name: string]: number } {
  return Object.fromEntries(
    names.flatMap((name): [string, number][] => {
      const value = members[name];
      if (value === undefined) return [];
      if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return [[name, value]];
      throw invalid(`${name} has to be a positive integer`);
    }),
  );
}

function invalid(why: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', `the event cannot be used: ${why}`);
}
