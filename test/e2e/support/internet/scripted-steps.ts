import { calls, type Rule } from '../forging-script.ts';

const BATCH = 20;

/** The calls of one answer to a message, by the name of the step. */
export type Steps = Readonly<Record<string, readonly [tool: string, input: object]>>;

/** The agent makes one call after the other, because the calls of one answer run at the same time, and then says what each gave. */
export function stepRules(agent: string, lastUser: string, steps: Steps): Rule[] {
  const system = `You are ${agent}`;
  const turns = Object.entries(steps).map(([id, [name, input]], index) => ({
    name: `${agent}: ${lastUser}: ${id}`,
    when: { system, lastUser, turn: index + 1 },
    answer: { toolCalls: [{ id, name, arguments: input }] },
  }));
  const text = Object.keys(steps)
    .map((id) => `${id}={{toolCall.${id} | json}}`)
    .join('\n');
  return [...turns, { name: `${agent}: ${lastUser}`, when: { system, lastUser, last: 'tool' }, answer: { text } }];
}

/** The agent makes all calls in one answer, and says what each gave, in a line of JSON each. */
export function batchRules(
  agent: string,
  lastUser: string,
  all: readonly (readonly [tool: string, input: object])[],
): Rule[] {
  const system = `You are ${agent}`;
  const named = all.map(([name, input], index) => ({ id: `call-${index}`, name, arguments: input }));
  const text = named.map(({ id }) => `{{toolCall.${id} | json}}`).join('\n');
  return [
    calls(lastUser, system, named),
    { name: `${agent} has finished: ${lastUser}`, when: { system, lastUser, last: 'tool' }, answer: { text } },
  ];
}

/** Parts of a list, small enough for the calls of one answer. */
export function batches<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, index) =>
    all.slice(index * BATCH, (index + 1) * BATCH),
  );
}

/** What the agent says that each step gave, as JSON. */
export function stepsIn(reply: string): Record<string, string> {
  const lines = reply.split('\n').map((line) => /^(\w+)=(.*)$/.exec(line));
  return Object.fromEntries(lines.flatMap((line) => (line === null ? [] : [[line[1] ?? '', line[2] ?? '']])));
}
