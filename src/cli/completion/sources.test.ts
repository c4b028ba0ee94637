import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { aTerminal } from '../io.testing.ts';
import { createProgram } from '../program.ts';
import { ARGUMENTS, OPTIONS, type Source, sourceOf } from './sources.ts';
import { nameOf, nameOfVerb } from './words.ts';

interface Place {
  readonly table: 'argument' | 'option';
  readonly verb: string;
  readonly name: string;
}

const TABLES = { argument: ARGUMENTS, option: OPTIONS } as const;

function verbsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(verbsOf)].filter((verb) => verb.name() !== '__complete');
}

/** Every argument, and every option with a value that the option itself does not list, of both programs. */
function placesOf(environment: Record<string, string>): Place[] {
  const program = createProgram({ ...aTerminal(), environment }, () => undefined);
  return verbsOf(program).flatMap((command): Place[] => {
    const verb = nameOfVerb(command);
    const open = command.options.filter((option) => (option.required || option.optional) && !option.argChoices);
    return [
      ...command.registeredArguments.map((argument): Place => ({ table: 'argument', verb, name: argument.name() })),
      ...open.map((option): Place => ({ table: 'option', verb, name: nameOf(option) })),
    ];
  });
}

const places = [...placesOf({}), ...placesOf({ TEMPER_PROGRAM: 'kubectl-temper' })];
const sourceOfPlace = ({ table, verb, name }: Place): Source | undefined => sourceOf(TABLES[table], verb, name);

describe('the sources of completion', () => {
  it('every argument and every option with a value completes something, or has a reason why not', () => {
    assert.ok(places.length > 300);
    const missing = places.filter((place) => sourceOfPlace(place) === undefined);
    assert.deepEqual(missing, []);
    for (const place of places) {
      const source = sourceOfPlace(place);
      if (typeof source !== 'object') continue;
      if ('free' in source) assert.ok(source.free.length > 5, JSON.stringify(place));
      if ('values' in source) assert.ok(source.values.length > 0, JSON.stringify(place));
    }
  });

  it('an argument or option that names an object completes the names of such objects', () => {
    const kinds: Readonly<Record<string, RegExp>> = {
      agent: /"agents"/,
      session: /"sessions"/,
      tool: /"tools"|tool/,
      policy: /"trustpolicies"/,
      subject: /subjects of the audit/,
      kind: /kinds/,
      kinds: /kinds/,
    };
    const named = places.filter(({ name }) => kinds[name] !== undefined);
    assert.ok(named.length > 50);
    for (const place of named)
      if (!(place.verb === 'mcp accept' && place.table === 'option'))
        assert.match(JSON.stringify(sourceOfPlace(place)), kinds[place.name] ?? /^$/, JSON.stringify(place));
  });

  it('every entry belongs to an argument or an option of a verb', () => {
    for (const [table, entries] of Object.entries(TABLES)) {
      const used = new Set(
        places.flatMap((place) => {
          const own = `${place.verb} ${place.name}`;
          return place.table === table ? [own in entries ? own : place.name] : [];
        }),
      );
      assert.deepEqual(
        Object.keys(entries).filter((entry) => !used.has(entry)),
        [],
        table,
      );
    }
  });
});
