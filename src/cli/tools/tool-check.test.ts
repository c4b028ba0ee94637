import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { publicData } from '../../../test/support/public-data.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { artifactOf } from '../../forge/forge.testing.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { createToolChecker } from './tool-report.ts';
import { toolCall } from './tool-call.ts';
import { toolCheck } from './tool-check.ts';
import type { ToolReport } from './tool-report.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const CORRECT = publicData('forge/humaneval-x-js.jsonl');
const FAILING = publicData('forge/humaneval-x-js.failing.jsonl');
const FORGES = join(ROOT, 'test/fixtures/forges');

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-tool-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const terminal = (stdin = ''): FakeTerminal => ({ ...aTerminal(stdin), cwd: ROOT });

async function check(...files: string[]): Promise<{ exit: number; lines: ToolReport[] }> {
  const io = terminal();
  const exit = await toolCheck({ files, output: 'json' }, io);
  const lines = io.printed().split('\n').slice(0, -1);
  return { exit, lines: lines.map((line) => JSON.parse(line) as ToolReport) };
}

async function file(name: string, content: string | object): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const slugify = async (): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(join(FORGES, 'slugify.json'), 'utf8')) as Record<string, unknown>;

describe('temper tool check', () => {
  it('a tool with a recursive schema is checked, and so are the tools after it', async () => {
    const request = (name: string, next: object): object => ({
      name,
      description: 'Doubles.',
      inputSchema: { type: 'object', properties: { n: { type: 'number' }, next } },
      code: '(input) => ({ twice: input.n * 2 })',
      testCases: [{ input: { n: 1 }, expectedOutput: { twice: 2 } }],
    });
    const files = [
      await file('recursive.json', request('recursive', { $ref: '#' })),
      await file('endless.json', request('endless', { allOf: [{ $ref: '#/properties/next' }] })),
      await file('last.json', request('last', {})),
    ];
    const { exit, lines } = await check(...files);
    assert.deepEqual(
      lines.map(({ name, accepted, code }) => [name, accepted, code]),
      [
        ['recursive', true, null],
        ['endless', false, 'TEMPER_FORGE_SCHEMA'],
        ['last', true, null],
      ],
    );
    assert.equal(exit, 1);
  });
  it('an error while one tool is checked is the refusal of that tool', async () => {
    const broken: Sandbox = { run: () => Promise.reject(new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'no runner')) };
    const checkTool = createToolChecker(broken, 1, NEVER_ABORTED);
    const request = {
      name: 'one',
      description: 'Doubles.',
      code: '(input) => ({ twice: input.n * 2 })',
      testCases: [{ input: { n: 1 }, expectedOutput: { twice: 2 } }],
    };
    const report = await checkTool({ origin: 'one.json', name: 'one', source: { request } });
    assert.deepEqual([report.accepted, report.code], [false, 'TEMPER_SANDBOX_UNAVAILABLE']);
    assert.match(report.message, /no runner/);
  });
  it('tool check accepts all 156 correct tools, in order', { skip: CORRECT.skip }, async () => {
    const { exit, lines } = await check(CORRECT.file);
    assert.deepEqual(
      lines.filter((line) => !line.accepted),
      [],
    );
    const tools = (await readFile(CORRECT.file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ToolReport & { testCases: [] });
    assert.deepEqual(
      lines.map(({ name, tests }) => [name, tests.passed, tests.failed]),
      tools.map(({ name, testCases }) => [name, testCases.length, 0]),
    );
    assert.equal(exit, 0);
    assert.deepEqual(Object.keys(lines[0] ?? {}), [
      'name',
      'digest',
      'accepted',
      'stage',
      'code',
      'message',
      'tests',
      'milliseconds',
    ]);
  });

  it('tool check refuses all 4 failing tools with the right code', { skip: FAILING.skip }, async () => {
    const { exit, lines } = await check(FAILING.file);
    assert.deepEqual(
      lines.map(({ name, accepted, stage, code }) => [name, accepted, stage, code]),
      [
        ['triangle_area', false, 'tests', 'TEMPER_FORGE_TEST_FAILED'],
        ['reverse_delete', false, 'tests', 'TEMPER_FORGE_TEST_FAILED'],
        ['even_odd_count', false, 'tests', 'TEMPER_FORGE_TEST_FAILED'],
        ['string_to_md5', false, 'static', 'TEMPER_FORGE_STATIC'],
      ],
    );
    assert.deepEqual(lines[2]?.tests, { passed: 7, failed: 1 });
    assert.equal(exit, 1);
  });

  it('tool check detects requests, the flat form, YAML, lists, artifacts, manifests and JSON Lines by content', async () => {
    const request = await slugify();
    const { implementation, ...flat } = request;
    const { code } = implementation as { code: string };
    const yaml = `name: slugify\ndescription: x\ncode: |\n${code.replaceAll(/^/gm, '  ')}\ntestCases:\n  - input: {text: A b}\n    expectedOutput: {slug: a-b}\n`;
    const lines = [request, { ...flat, code }].map((value) => JSON.stringify(value)).join('\n\n');
    const results = await check(
      await file('request.json', request),
      await file('flat.json', { ...flat, code }),
      await file('request.yaml', yaml),
      await file('list.json', [request, request]),
      await file('many.jsonl', lines),
    );
    assert.equal(results.exit, 0, JSON.stringify(results.lines));
    assert.deepEqual(
      results.lines.map(({ name }) => name),
      Array.from({ length: 7 }, () => 'slugify'),
    );
  });

  it('tool check verifies the digest of manifests and packages', async () => {
    const [made] = (await check(join(FORGES, 'slugify.json'))).lines;
    const artifact = artifactOf(await slugify());
    const manifest = (changes: object): object => ({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'EmergentTool',
      metadata: { name: 'slugify' },
      spec: { artifact: { ...artifact, ...changes }, digest: made?.digest, tier: 'Agent' },
    });
    const { lines, exit } = await check(
      await file('artifact.json', artifact),
      await file('manifest.json', manifest({})),
      await file('edited.json', manifest({ description: 'something else' })),
      await file('unknown.json', manifest({ tier: 'Shared' })),
      await file('agent.json', { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent' }),
    );
    assert.equal(exit, 1);
    assert.deepEqual(
      lines.map(({ accepted, code }) => [accepted, code]),
      [
        [true, null],
        [true, null],
        [false, 'TEMPER_PACKAGE_INVALID'],
        [false, 'TEMPER_FORGE_SHAPE'],
        [false, 'TEMPER_MANIFEST_INVALID'],
      ],
    );
    assert.deepEqual([lines[0]?.digest, lines[1]?.digest], [made?.digest, made?.digest]);
  });

  it('tool check reads portable packages, and refuses one without source', async () => {
    const { implementation, ...tool } = await slugify();
    const packaged = (changes: object): object => ({
      schemaVersion: 'agentos.emergent-tool.v1',
      packageType: 'emergent-tool',
      tool: {
        ...tool,
        implementation: { ...(implementation as object), ...changes },
        judgeVerdicts: [{ approved: true }],
      },
    });
    const { lines } = await check(
      await file('package.json', packaged({})),
      await file('redacted.json', packaged({ code: undefined, redactedAtRest: true })),
    );
    assert.deepEqual(
      lines.map(({ name, accepted, code }) => [name, accepted, code]),
      [
        ['slugify', true, null],
        ['slugify', false, 'TEMPER_PACKAGE_INVALID'],
      ],
    );
  });

  it('tool check continues after a line that is not a tool', async () => {
    const good = JSON.stringify(await slugify());
    const { lines, exit } = await check(await file('mixed.jsonl', `${good}\n{"name":\n5\n${good}\n`));
    assert.deepEqual(
      lines.map(({ accepted }) => accepted),
      [true, false, false, true],
    );
    assert.equal(exit, 1);
  });

  it('tool check has no network: a tool that fetches needs fixtures', async () => {
    const request = JSON.parse(await readFile(join(FORGES, 'check_http_status.json'), 'utf8')) as {
      testCases: { fixtures?: unknown }[];
    };
    for (const test of request.testCases) delete test.fixtures;
    const [line] = (await check(await file('fetching.json', request))).lines;
    assert.equal(line?.code, 'TEMPER_FORGE_TEST_FAILED');
    assert.match(line?.message ?? '', /fixture/);
  });

  it('tool check exits 2 for a file that is absent, empty or neither JSON nor YAML', async () => {
    for (const path of [
      join(folder, 'absent.json'),
      await file('empty.json', ''),
      await file('broken.json', '{"a": ['),
    ]) {
      const io = terminal();
      assert.equal(await toolCheck({ files: [path], output: 'json' }, io), 2, path);
      assert.match(io.errors(), /TEMPER_USAGE/);
      assert.equal(io.printed(), '');
    }
  });

  it('tool check prints its results as text', async () => {
    const io = terminal();
    const bad = await file('bad.json', { ...(await slugify()), name: 'Bad\u001b[31m' });
    assert.equal(await toolCheck({ files: [join(FORGES, 'slugify.json'), bad], output: 'text' }, io), 1);
    assert.match(io.printed(), /✓ slugify@[0-9a-f]{8} {2}tests 2\/2 ×2/);
    assert.match(io.printed(), /✗ .* shape {2}TEMPER_FORGE_SHAPE\n/);
    assert.match(io.printed(), /1 of 2 accepted\n$/);
    assert.ok(!io.printed().includes('\u001b'));
  });
});

describe('temper tool call', () => {
  const call = async (input: string, path = join(FORGES, 'slugify.json'), stdin = '') => {
    const io = terminal(stdin);
    const exit = await toolCall({ file: path, input, output: 'json' }, io);
    return { exit, answer: JSON.parse(io.printed()) as Record<string, unknown> };
  };

  it('tool call accepts input from the command line, a file or standard input', async () => {
    const path = await file('input.json', '{"text":"From File"}');
    assert.deepEqual((await call('{"text":"A b"}')).answer['output'], { slug: 'a-b' });
    assert.deepEqual((await call(`@${path}`)).answer['output'], { slug: 'from-file' });
    assert.deepEqual((await call('-', undefined, '{"text":"From Stdin"}')).answer['output'], { slug: 'from-stdin' });
  });

  it('tool call refuses input that violates the schema, and a tool that a gate refuses', async () => {
    const wrong = await call('{"text":5}');
    assert.deepEqual([wrong.exit, (wrong.answer['error'] as ToolReport).code], [1, 'TEMPER_TOOL_INPUT_INVALID']);
    const banned = await file('banned.json', {
      ...(await slugify()),
      implementation: { code: 'function execute() { return process.env; }' },
    });
    const refused = await call('{"text":"a"}', banned);
    assert.deepEqual([refused.exit, (refused.answer['error'] as ToolReport).code], [1, 'TEMPER_FORGE_STATIC']);
  });

  it('tool call prints no character that controls a terminal', async () => {
    const echo = { ...(await slugify()), implementation: { code: 'function execute(i) { return { slug: i.text }; }' } };
    const path = await file('echo.json', echo);
    const text = 'esc \u001b]0;x\u0007 c1 \u009b2J bidi \u202e tag \u{e0041}';
    for (const output of ['json', 'text'] as const) {
      const io = terminal('');
      assert.equal(await toolCall({ file: path, input: JSON.stringify({ text }), output }, io), 0, io.printed());
      assert.doesNotMatch(io.printed(), /[^\n\x20-\x7e]/);
      const shown = JSON.parse(io.printed()) as { slug?: string; output?: { slug: string } };
      assert.equal(shown.output?.slug ?? shown.slug, text);
    }
  });

  it('tool call exits 2 for input that is not JSON, and for a file with several tools', async () => {
    assert.equal((await call('{')).exit, 2);
    assert.equal((await call('@absent.json')).exit, 2);
    const two = await file('two.json', [await slugify(), await slugify()]);
    assert.equal((await call('{}', two)).exit, 2);
  });
});
