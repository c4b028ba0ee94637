import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it, type TestContext } from 'node:test';
import { MessageLog } from '../../../src/standalone/messages/message-log.ts';
import { storedChildren } from '../../../src/standalone/children/child-records.ts';
import { seededRandom } from '../../support/seeded-random.ts';
import type { CommandResult, RunningCommand } from '../command.ts';
import { ANSWER_TOKENS, finishWork, type KilledTeam, openKilledTeam, SESSION } from './killed-team-project.ts';
import {
  charged,
  historyOf,
  nestedItems,
  type OpenReservation,
  openRequests,
  openReservations,
  outline,
  resultOf,
  WrittenFiles,
} from './killed-team-state.ts';

/** `make chaos` sets more. */
const WALKS = Number(process.env['KILLS'] ?? 6);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e9));
const LANES = 2;
/** A kill comes up to this time after a line of output, to meet writes that print nothing; before the first line, a process starts and restores. */
const MAX_DELAY_MS = 15;
const START_MS = 1_500;
/** A call that writes files. */
interface WritingCall {
  readonly agent: string;
  readonly session: string;
  readonly call: string;
  readonly files: readonly string[];
  /** A call with an approval, and one of a program, are made at most once; any other one again until its result is stored. */
  readonly isOnce: boolean;
}

const CALLS: readonly WritingCall[] = [
  { agent: 'lead', session: SESSION, call: 'held', files: ['lead.txt'], isOnce: true },
  { agent: 'writer', session: `lead.${SESSION}`, call: 'held', files: ['writer.txt'], isOnce: true },
  { agent: 'reader', session: `lead.${SESSION}`, call: 'free', files: ['reader.txt'], isOnce: false },
  { agent: 'coder', session: `lead.${SESSION}`, call: 'free', files: ['coder-1.txt', 'coder-2.txt'], isOnce: true },
];
/** How a model learns that a call may have had its effect. */
const UNKNOWN_EFFECT = /TEMPER_APPROVAL_USED|TEMPER_TOOL_OUTCOME_UNKNOWN/;

/** A kill so many lines after the start or the kill before, and so many milliseconds after that line. */
interface Moment {
  readonly line: number;
  readonly delayMs: number;
}

/** Kills the process that prints the line of each moment in turn. */
class Killer {
  readonly #moments: Moment[];
  #since = 0;
  lines = 0;
  kills = 0;

  constructor(moments: readonly Moment[]) {
    this.#moments = [...moments];
  }

  async supervise(running: RunningCommand): Promise<CommandResult> {
    const { child, ended } = running;
    let killing: Promise<void> | undefined;
    const count = (chunk: string): void => {
      const added = chunk.split('\n').length - 1;
      this.lines += added;
      this.#since += added;
      const [next] = this.#moments;
      if (next === undefined || this.#since < next.line || killing !== undefined) return;
      this.#moments.shift();
      killing = Promise.race([sleep(next.delayMs), ended]).then(() => void child.kill('SIGKILL'));
    };
    child.stdout?.on('data', count);
    count('');
    const result = await ended;
    await killing;
    if (result.code === null) {
      this.kills += 1;
      this.#since = 0;
    }
    return result;
  }
}

/** What the processes of one walk left open, and what the files show. */
class Walk {
  readonly team: KilledTeam;
  readonly files: WrittenFiles;
  readonly results: CommandResult[] = [];
  readonly #left = new Map<string, OpenReservation>();

  constructor(team: KilledTeam) {
    this.team = team;
    this.files = new WrittenFiles(team.path);
  }

  async run(killer: Killer): Promise<void> {
    const { records } = this.team;
    await finishWork(this.team, {
      ended: async (running) => {
        const result = await killer.supervise(running);
        this.results.push(result);
        await this.#ended(result);
        return result;
      },
      isNew: async () => (await historyOf(records, 'lead', SESSION)).length === 0,
      requests: () => openRequests(records),
    });
  }

  async #ended({ code }: CommandResult): Promise<void> {
    const { records } = this.team;
    const open = await openReservations(records);
    if (code !== null) assert.equal(open.size, 0, 'a process that ends settles all its reservations');
    for (const [id, reservation] of open) this.#left.set(id, reservation);
    for (const { agent, session, call, files, isOnce } of CALLS) {
      const isStored = resultOf(await historyOf(records, agent, session), call) !== undefined;
      if (isOnce || isStored) for (const file of files) await this.files.mark(file);
    }
  }

  /** Each agent has said, called and received everything exactly once. */
  async assertHistories(): Promise<void> {
    const { records } = this.team;
    const lead = await historyOf(records, 'lead', SESSION);
    const shown = outline(lead);
    assert.deepEqual(
      shown.slice(0, 7),
      ['< go', '> child', '> now', '> later', '> coded', '> nested', '> held'],
      shown.join('\n'),
    );
    assert.deepEqual(shown.slice(7, 13).toSorted(), ['= child', '= coded', '= held', '= later', '= nested', '= now']);
    const rest = [
      '> asked',
      '= asked',
      '> ended',
      '= ended',
      '> read, coded, nested, helped.',
      '< written',
      '> Noted.',
    ];
    assert.deepEqual(shown.slice(13), rest);
    assert.deepEqual(outline(nestedItems(lead)), ['< work', '> note', '= note', '> nested']);
    for (const [agent, message, call, text] of [
      ['reader', 'read', 'free', 'read'],
      ['writer', 'write', 'held', 'written'],
      ['coder', 'code', 'free', 'coded'],
    ] as const) {
      const items = outline(await historyOf(records, agent, `lead.${SESSION}`));
      assert.deepEqual(items, [`< ${message}`, `> ${call}`, `= ${call}`, `> ${text}`]);
    }
  }

  /** A call with an approval, and one of a program, was made at most once; where its effect is unknown, the model knows that. */
  async assertEffects(): Promise<void> {
    const { records } = this.team;
    await this.files.assertWrittenOnce();
    let asked = 0;
    for (const { agent, session, call, files } of CALLS) {
      const result = resultOf(await historyOf(records, agent, session), call);
      assert.ok(result?.role === 'tool');
      // A program returns what it knows about each file.
      const outcomes =
        result.name === 'invoke' ? (JSON.parse(result.text) as string[]) : [result.isError ? result.text : 'written'];
      assert.equal(outcomes.length, files.length, result.text);
      for (const [index, file] of files.entries()) {
        const outcome = outcomes[index] ?? '';
        if (outcome === 'written') assert.ok(await this.files.exists(file), `${file} was not written`);
        else assert.match(outcome, UNKNOWN_EFFECT, file);
      }
      // A kill between the start of a program's call and its request leaves an unknown effect, and no request.
      if (call === 'held' && !outcomes.includes('TEMPER_TOOL_OUTCOME_UNKNOWN')) asked += 1;
    }
    const requests = (await records.list('approvalrequests')).length;
    assert.ok(requests >= asked && requests <= 2, `${requests} requests, for ${asked} calls that had their approval`);
  }

  async assertNothingLeft(): Promise<void> {
    const { records } = this.team;
    const { inboxes } = await MessageLog.open(records, Date.now());
    for (const [agent, { messages, asks }] of inboxes) {
      assert.deepEqual([...messages.keys()], [], `${agent} has messages that have not ended`);
      const states = [...asks.values()].map(
        ({ state, takenBy }) => `${state} ${takenBy === undefined ? 'open' : 'taken'}`,
      );
      assert.deepEqual([...new Set(states)], states.length === 0 ? [] : ['Answered taken'], agent);
    }
    const children = await storedChildren(records, 'default', Date.now());
    assert.deepEqual(
      children.map(({ parent, endedAt }) => [parent, endedAt !== undefined]),
      [['default/lead', true]],
    );
    const [child] = children;
    assert.equal(await records.get('agents', child?.agent.metadata.name ?? ''), undefined);
    assert.deepEqual(await historyOf(records, child?.agent.metadata.name ?? '', `lead.${SESSION}`), []);
  }

  /** Every account is charged what the model served to its agents, and what the killed processes had reserved. */
  async assertCharged(): Promise<void> {
    const served = new Map<string, number>();
    for (const { conversation } of this.team.replay.requests) {
      const name = /You are (\w+)\./.exec(conversation.system)?.[1] ?? '';
      for (const account of ACCOUNTS[name] ?? []) add(served, account, 1);
    }
    const all = await charged(this.team.records);
    for (const [account, requests] of served) {
      const left = [...this.#left.values()].filter(({ accounts }) => accounts.includes(account));
      const open = left.length;
      const settled = ((all.get(account) ?? 0) - left.reduce((sum, { tokens }) => sum + tokens, 0)) / ANSWER_TOKENS;
      const seen = `${account}: ${settled} answers charged, ${open} reservations, ${requests} requests`;
      assert.ok(Number.isInteger(settled) && settled <= requests && settled + open >= requests, seen);
    }
  }
}

const ACCOUNTS: Readonly<Record<string, readonly string[]>> = {
  lead: ['agent/default/lead', 'policy/default/careful'],
  nested: ['agent/default/lead', 'policy/default/careful'],
  helper: ['agent/default/lead', 'policy/default/careful'],
  writer: ['agent/default/writer', 'policy/default/careful'],
  reader: ['agent/default/reader', 'policy/default/free'],
  coder: ['agent/default/coder', 'policy/default/free'],
};

function add(sums: Map<string, number>, key: string, number: number): void {
  sums.set(key, (sums.get(key) ?? 0) + number);
}

/** Runs the team with kills, and returns the killer with its counts. */
async function walk(moments: readonly Moment[]): Promise<Killer> {
  await using team = await openKilledTeam();
  const [killer, one] = [new Killer(moments), new Walk(team)];
  try {
    await one.run(killer);
    await one.assertHistories();
    await one.assertEffects();
    await one.assertNothingLeft();
    await one.assertCharged();
  } catch (error) {
    const printed = one.results.map(({ code, stdout, stderr }) => `ended with ${code}\n${stdout}${stderr}`).join('\n');
    throw new Error(`killed after ${JSON.stringify(moments)} (SEED=${SEED})\n${printed}`, { cause: error });
  }
  return killer;
}

describe('a team with calls, approvals, programs, children, tickets and nested agents', () => {
  it(`after kills at any moment its next runs end the work: nothing is lost, answered twice or charged wrongly (${WALKS} walks)`, async (context: TestContext) => {
    context.diagnostic(`SEED=${SEED}`);
    const { lines } = await walk([]);
    const random = seededRandom(SEED);
    const moment = (limit: number): Moment => {
      const line = random(limit);
      return { line, delayMs: random(line === 0 ? START_MS : MAX_DELAY_MS) };
    };
    let [started, kills] = [0, 0];
    const lane = async (): Promise<void> => {
      while (started < WALKS) {
        started += 1;
        // In every second walk the process that goes on is killed too, sooner.
        const moments = started % 2 === 0 ? [moment(lines), moment(lines / 4)] : [moment(lines)];
        kills += (await walk(moments)).kills;
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    context.diagnostic(`${kills} processes killed`);
    assert.ok(kills >= WALKS / 2, `only ${kills} processes were killed`);
  });
});
