import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readFileSync } from 'node:fs';
import { artifactOf, denyingHost } from '../../forge/forge.testing.ts';
import type { JsonObject } from '../../lib/json.ts';
import { systemClock } from '../../lib/clock.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { createToolView } from '../../tools/view.ts';
import { corpusTools } from '../../../test/fixtures/wrong-tools/corpus.ts';
import { publicData } from '../../../test/support/public-data.ts';
import { MISTAKES, type Mistake } from '../../../test/fixtures/wrong-tools/family.ts';
import { CorpusExamination, type ExaminedTool } from '../../../test/support/examined-corpus.ts';
import { createVerifier } from '../verification/verifier.ts';
import { promotionRules } from '../promotion/promotion-rules.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { anOp } from '../tempering.testing.ts';
import { batchedRuns } from './examination.testing.ts';
import { createExaminer } from './examiner.ts';
import type { ExaminationReport } from './types.ts';
import { examinationVerdict, type ExaminationVerdict } from './verdict.ts';

const RULES = promotionRules({}).examination;
/** Tools that are examined side by side. */
const WORKERS = 2;
/** One of so many public tools is examined. */
const SAMPLED = 4;
const PUBLIC_TOOLS = publicData('forge/humaneval-x-js.jsonl');
/** Mistakes that show in the outputs of single calls with small inputs, which are all that a tester's case is. */
const WITHOUT_TRACE_IN_CASES: ReadonlySet<Mistake> = new Set([
  'state between calls',
  'count- or time-triggered',
  'quadratic blow-up',
  'silent truncation',
]);

type Outcome = ExaminationVerdict['outcome'];
type Stage = 'alone' | 'correct' | 'oneWrong';

/** What each stage says about one tool, with a judge and a panel that approve everything. */
interface Judged {
  examined: ExaminedTool;
  alone: Outcome;
  correct: Outcome;
  oneWrong: Outcome;
}

function outcomeOf(report: ExaminationReport): Outcome {
  return examinationVerdict(report, RULES).outcome;
}

function judged(examined: ExaminedTool): Judged {
  const alone = outcomeOf({ ...examined.correct, testers: [] });
  return { examined, alone, correct: outcomeOf(examined.correct), oneWrong: outcomeOf(examined.oneWrong) };
}

function nameOf({ examined: { tool } }: Judged): string {
  return `${tool.family.name}: ${tool.wrong?.mistake ?? 'right'}`;
}

function share(all: readonly Judged[], stage: Stage, ...outcomes: Outcome[]): number {
  return all.filter((one) => outcomes.includes(one[stage])).length / all.length;
}

/** The figures of docs/development/benchmarks.md. */
function tableOf(groups: readonly (readonly [string, readonly Judged[]])[]): string {
  const percent = (value: number): string => `${Math.round(value * 100)} %`;
  return groups
    .map(([name, tools]) => {
      const figures = [
        percent(share(tools, 'alone', 'Refuse')),
        percent(share(tools, 'alone', 'Ask')),
        percent(share(tools, 'correct', 'Refuse')),
        percent(share(tools, 'correct', 'Ask')),
        percent(share(tools, 'oneWrong', 'Refuse')),
        percent(share(tools, 'oneWrong', 'Ask')),
      ];
      return `| ${name} | ${tools.length} | ${figures.join(' | ')} |`;
    })
    .join('\n');
}

let supervisor: Supervisor;
let corpus: CorpusExamination;
const all: Judged[] = [];
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: WORKERS, maxRunners: WORKERS });
  corpus = new CorpusExamination(batchedRuns(supervisor));
  const waiting = corpusTools();
  const work = async (): Promise<void> => {
    for (let tool = waiting.shift(); tool !== undefined; tool = waiting.shift()) {
      all.push(judged(await corpus.examine(tool)));
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
});
after(() => supervisor[Symbol.asyncDispose]());

const wrong = (): Judged[] => all.filter(({ examined }) => examined.tool.wrong !== undefined);
const right = (): Judged[] => all.filter(({ examined }) => examined.tool.wrong === undefined);

describe('the corpus of wrong tools', () => {
  it('the corpus has at least 150 wrong tools of twelve kinds and 100 right ones, and all pass their own tests', (t) => {
    const byMistake = MISTAKES.map((mistake): [string, Judged[]] => [
      mistake,
      wrong().filter(({ examined }) => examined.tool.wrong?.mistake === mistake),
    ]);
    t.diagnostic(`\n${tableOf([...byMistake, ['all wrong', wrong()], ['all right', right()]])}`);
    assert.ok(wrong().length >= 150 && right().length >= 100);
    for (const [mistake, tools] of byMistake) assert.ok(tools.length >= 10, mistake);
    assert.deepEqual(all.filter(({ examined }) => examined.failedTests > 0).map(nameOf), []);
  });

  it('every wrong tool gives a wrong output for a case of a tester, unless its mistake needs many calls or large inputs', async () => {
    const harmless: string[] = [];
    for (const one of wrong()) {
      const { tool } = one.examined;
      const mistake = tool.wrong?.mistake;
      if (mistake === undefined || WITHOUT_TRACE_IN_CASES.has(mistake)) continue;
      if (!(await corpus.differs(tool))) harmless.push(nameOf(one));
    }
    assert.deepEqual(harmless, []);
  });

  it('without any model at least 30 % of the wrong tools and at most 2 % of the right ones are refused', () => {
    assert.ok(share(wrong(), 'alone', 'Refuse') >= 0.3, `${share(wrong(), 'alone', 'Refuse')}`);
    assert.deepEqual(
      right()
        .filter(({ alone }) => alone === 'Refuse')
        .map(nameOf),
      [],
    );
  });

  it('two testers with five correct cases each flag at least 95 % of the wrong tools and refuse 85 %, and no right one', () => {
    assert.ok(share(wrong(), 'correct', 'Refuse', 'Ask') >= 0.95, `${share(wrong(), 'correct', 'Refuse', 'Ask')}`);
    assert.ok(share(wrong(), 'correct', 'Refuse') >= 0.85, `${share(wrong(), 'correct', 'Refuse')}`);
    assert.deepEqual(
      right()
        .filter(({ correct }) => correct === 'Refuse')
        .map(nameOf),
      [],
    );
  });

  it('with one tester that is wrong at least 90 % of the wrong tools are flagged, and every right one is a question to a user', () => {
    assert.ok(share(wrong(), 'oneWrong', 'Refuse', 'Ask') >= 0.9, `${share(wrong(), 'oneWrong', 'Refuse', 'Ask')}`);
    assert.deepEqual(
      right()
        .filter(({ oneWrong }) => oneWrong !== 'Ask')
        .map(nameOf),
      [],
    );
  });

  it('no public tool is refused', { skip: PUBLIC_TOOLS.skip }, async () => {
    const examiner = createExaminer({
      verifier: batchedRuns(supervisor),
      schemas: createSchemaCompiler(),
      testers: { names: [], ask: async () => [] },
    });
    const refused: string[] = [];
    const requests = readFileSync(PUBLIC_TOOLS.file, 'utf8')
      .trim()
      .split('\n')
      .filter((_, index) => index % SAMPLED === 0);
    for (const { code, allowlist, ...request } of requests.map((line) => JSON.parse(line) as JsonObject)) {
      const implementation = { mode: 'sandbox', code, allowlist };
      // Tools whose time grows with a number end at once.
      const artifact = artifactOf({ ...request, implementation, limits: { duration: '100ms' } });
      const subject = { artifact, digest: artifactDigest(artifact), authorModel: 'test/author', recorded: [] };
      if (outcomeOf(await examiner.examine(subject, anOp())) === 'Refuse') refused.push(artifact.name);
    }
    assert.ok(requests.length > 30);
    assert.deepEqual(refused, []);
  });

  it('the verifier of a promotion, with fresh isolates for every run, leads to the same verdicts for a sample', async () => {
    const sandbox = { sandbox: supervisor, close: async () => undefined };
    const verifier = createVerifier({
      openSandbox: async () => sandbox,
      dependency: () => undefined,
      view: createToolView(),
      invoke: () => Promise.reject(new TypeError('the corpus has no composed tools')),
      host: denyingHost,
      schemas: createSchemaCompiler(),
      clock: systemClock,
    });
    const sample = ['sum_numbers', 'plural_of_noun'];
    const real = new CorpusExamination(verifier);
    for (const one of all.filter(({ examined }) => sample.includes(examined.tool.family.name))) {
      const { alone, correct, oneWrong } = judged(await real.examine(one.examined.tool));
      assert.deepEqual(
        { alone, correct, oneWrong },
        { alone: one.alone, correct: one.correct, oneWrong: one.oneWrong },
        nameOf(one),
      );
    }
  });
});
