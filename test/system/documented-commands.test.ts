import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { text } from 'node:stream/consumers';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { parseModelConfig } from '../../src/gateway/models/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { parseNamedModels } from '../../src/models/read-named-models.ts';
import { startReplay } from '../../src/models/replay/server.ts';
import { codeBlocks, commandsIn } from '../support/documented-commands.ts';
import { testExists } from '../support/named-test.ts';
import { type CommandResult, plainEnvironment, QUICKSTART, ROOT, startTemper, temporaryFolder } from './command.ts';
import { EXCLUDED, type Exclusion } from './excluded-commands.ts';

interface Expectation {
  code: number;
  /** Matches the standard output. */
  output: RegExp;
  /** Arguments for what the page leaves to the user, such as a provider key. */
  append?: string;
  input?: string;
}

interface Serving {
  replace: readonly [text: string, other: string];
  agent: string;
}

const SCRIPTED = '--model-script manifests/quickstart/replay.yaml --state scripted';
const PROBE =
  'temper model probe --type openai-compatible --base-url http://localhost:11434/v1 --model qwen3:8b -m "Say hello"';

/** The commands that run here, after `make demo`, in the order of the pages. */
const EXPECTED: Readonly<Record<string, Expectation>> = {
  'bin/temper get tools --state .temper-demo': { code: 0, output: /csv_rows +Agent +true/ },
  'bin/temper describe tool csv_rows --state .temper-demo': {
    code: 0,
    output: /(?=[\s\S]*function execute)(?=[\s\S]*sha256:1096bda4)/,
  },
  'bin/temper tool export csv_rows --state .temper-demo': { code: 0, output: /agentos\.emergent-tool\.v1/ },
  'bin/temper sessions --state .temper-demo': { code: 0, output: /^SESSION +AGENT +MESSAGES/ },
  'bin/temper validate -f manifests/samples': {
    code: 0,
    output: /^\d+ valid objects, no problems(?:, \d+ warnings?)?$/m,
  },
  'bin/temper run -f manifests/code --workspace manifests/quickstart -m "How many orders were paid in April, and what were they worth?"':
    {
      code: 0,
      output: /361 orders were paid in April, together \$67091\.82/,
      append: '--model-script manifests/code/replay.yaml --state code-sample',
    },
  'bin/temper run -f manifests/orchestrator/orchestrator.yaml --model-script manifests/orchestrator/replay.yaml --workspace manifests/quickstart -m "Which orders are there?"':
    { code: 0, output: /In short: 6 files of orders\./, append: '--state team-sample' },
  'bin/temper run -f manifests/nested --workspace manifests/quickstart -m "How many orders were paid in April, May and June?"':
    {
      code: 0,
      output: /2026-04: 361 paid orders, 2026-05: 384 paid orders, 2026-06: 381 paid orders/,
      append: '--model-script manifests/nested/replay.yaml --state nested-sample',
    },
  'bin/temper run -f manifests/skills/agent.yaml manifests/skills/policy.yaml --skills manifests/skills --workspace manifests/quickstart -m "Write the note for: tab completion of names."':
    {
      code: 0,
      output: /Added: the command line completes names with the tab key\./,
      append: '--model-script manifests/skills/replay.yaml --state skills-sample',
    },
  'temper skill check manifests/skills': {
    code: 0,
    output: /^skill:release-notes is valid, \d+ characters, 1 resources/,
  },
  'temper skill export manifests/skills --namespace team-a': { code: 0, output: /^ {2}type: Skill$/m },
  'bin/temper run -f manifests/approvals --model-script manifests/approvals/replay.yaml --workspace manifests/quickstart -m "Note that the figures of April are final."':
    { code: 3, output: /"type":"turn-parked"/, append: '--state approvals-sample' },
  'bin/temper run -f manifests/quickstart --workspace manifests/quickstart': {
    code: 0,
    output: /361 orders were paid in April/,
    append: SCRIPTED,
    input: 'How many orders were paid in April, and what were they worth?\n',
  },
  'temper policy explain -f manifests/quickstart --tool file_read --input \'{"path":"data/a.csv"}\'': {
    code: 0,
    output: /^Allow +by grant\.tools/,
  },
  'temper policy explain -f manifests/quickstart --host api.example.com:443': {
    code: 1,
    output: /^Deny +by grant\.network/,
  },
  'temper policy explain -f manifests/quickstart --forge Sandbox --api fetch --domain api.example.com': {
    code: 1,
    output: /^Deny +by level\.forge/,
  },
  "temper policy explain -f manifests/quickstart --tool call_api --forged --api fetch --domain api.example.com --input '{}'":
    {
      code: 0,
      output: /^Escalate +by autonomy[^]*refused: fetch api\.example\.com \(grant\.network\)/,
    },
  'temper policy explain -f manifests/quickstart --model default/default': {
    code: 0,
    output: /^Allow +by grant\.model/,
  },
  'temper policy explain -f manifests/quickstart --message reviewer --tainted': {
    code: 1,
    output: /^Deny +by grant\.messages/,
  },
  'temper discover "read a csv file" -f manifests/quickstart --explain': {
    code: 0,
    output: /^RELEVANCE +ID +DESCRIPTION\n[\d.]+ +tool:file_read /,
  },
  'temper tool export csv_rows > csv_rows.emergent-tool.yaml': {
    code: 0,
    output: /^$/,
    append: '--state .temper-demo',
  },
  'temper tool export csv_rows --gitops ./tools --approver system:serviceaccount:flux-system:kustomize-controller': {
    code: 0,
    output: /^csv_rows \(sha256:1096bda4[0-9a-f]+\) of .*: merging the files approves it$/m,
    append: '--state .temper-demo',
  },
  'temper import openfang agents/ -o imported': {
    code: 0,
    output: /^agents\/researcher\.toml -> agents\/researcher\.yaml\n[\s\S]*^1 of 1 files imported to imported /m,
  },
  'temper tool import csv_rows.emergent-tool.yaml --agent analyst': {
    code: 0,
    output: /csv_rows .* passed every gate except the judge/,
    append: '--state .temper-demo',
  },
};

/** Commands that serve until an interrupt: what the command line cannot know, such as a free port, and the agent that it serves. */
const SERVING: Readonly<Record<string, Serving>> = {
  'temper run --serve -f agents.yaml': {
    replace: ['-f agents.yaml', '-f agents.yaml --model-script manifests/scheduled/replay.yaml --state served'],
    agent: 'daily-report',
  },
  'temper run --serve --a2a 8095 -f manifests/a2a --model-script manifests/a2a/replay.yaml --workspace manifests/quickstart':
    { replace: ['--a2a 8095', '--a2a 0 --state served'], agent: 'archive' },
};

const VALIDATE = 'temper validate -f manifests/quickstart/agent.yaml -f policies/';

const CHART_VALUES = /^(?:gateway|networkPolicies|tracing):/;

/** A folder with the commands of this checkout and a copy of its manifests. */
async function aCheckout(path: string): Promise<void> {
  await mkdir(join(path, 'bin'));
  for (const name of ['temper', 'kubectl-temper', 'node']) {
    await symlink(join(ROOT, 'bin', name), join(path, 'bin', name));
  }
  await cp(join(ROOT, 'manifests'), join(path, 'manifests'), { recursive: true });
  await cp(join(ROOT, 'manifests/scheduled/scheduled.yaml'), join(path, 'agents.yaml'));
  await mkdir(join(path, 'agents'));
  await writeFile(join(path, 'agents/researcher.toml'), 'name = "researcher"\n[capabilities]\ntools = ["file_read"]\n');
}

async function runLine(command: string, cwd: string, input = ''): Promise<CommandResult> {
  const child = spawn('bash', ['-c', command], {
    cwd,
    env: { ...plainEnvironment(), PATH: `${join(cwd, 'bin')}:${process.env['PATH'] ?? ''}` },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const closed = Promise.withResolvers<number | null>();
  child.on('close', closed.resolve);
  child.stdin.on('error', () => {
    // The command may exit before it has read all its input.
  });
  child.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), closed.promise]);
  return { code, stdout, stderr };
}

function excludedBy(command: string): Exclusion | undefined {
  return EXCLUDED.find(({ command: excluded }) => excluded.test(command));
}

const OWN_PROGRAM = /^(?:bin\/)?(?:temper|node|kubectl temper)\b/;
const REPOSITORY_PATH = /(?<![\w/.-])(?:manifests|charts|test)\/[\w./-]+/g;
/** Hosts of the pages; in their place the test has a port of this machine that nothing listens on. */
const EXAMPLE_HOST = /(?:registry|git)\.example\.com/g;

const BLOCKS = await codeBlocks(ROOT);
const COMMANDS = commandsIn(BLOCKS).map(({ command }) => command);

describe('the commands of the documentation', () => {
  it('every documented command runs in a test or has a reason why it cannot', () => {
    const tested = new Set([...Object.keys(EXPECTED), ...Object.keys(SERVING), PROBE, VALIDATE]);
    const unknown = COMMANDS.filter(
      (command) =>
        !tested.has(command) &&
        !/^(make|kubectl temper) /.test(command) &&
        !EXCLUDED.some(({ command: excluded }) => excluded.test(command)),
    );
    assert.deepEqual(unknown, []);
    assert.deepEqual(
      [...tested].filter((command) => !COMMANDS.includes(command)),
      [],
      'these tested commands are on no page',
    );
    for (const { command: excluded, reason } of EXCLUDED) {
      assert.ok(
        COMMANDS.some((command) => excluded.test(command)),
        `no page has ${excluded}, which ${reason}`,
      );
    }
    assert.deepEqual(
      COMMANDS.filter((command) => tested.has(command) && excludedBy(command) !== undefined),
      [],
      'these tested commands are excluded as well',
    );
  });

  it('the tests that run an excluded command in place of its page exist', () => {
    const missing = EXCLUDED.flatMap(({ tests }) => tests.filter((test) => !testExists(test)));
    assert.deepEqual(missing, []);
  });

  it('an excluded command of another program names files, chart values and roles of this repository', async () => {
    const values = parse(await readFile(join(ROOT, 'charts/temper/values.yaml'), 'utf8')) as object;
    const roles = await readFile(join(ROOT, 'charts/temper/templates/cluster/users.yaml'), 'utf8');
    const [, qwen = ''] =
      /^qwen_code=(\S+)$/m.exec(await readFile(join(ROOT, 'test/cluster/build-tools.sh'), 'utf8')) ?? [];
    for (const command of COMMANDS) {
      const exclusion = excludedBy(command);
      if (exclusion === undefined || 'fails' in exclusion) continue;
      assert.doesNotMatch(command, OWN_PROGRAM, command);
      for (const [path] of command.matchAll(REPOSITORY_PATH)) assert.ok(existsSync(join(ROOT, path)), command);
      for (const [, role] of command.matchAll(/--clusterrole=(temper-[\w-]+)/g)) {
        assert.ok(roles.includes(`name: ${role}\n`), command);
      }
      if (command.startsWith('npm ')) assert.ok(command.endsWith(`@${qwen}`), `${command}, and the test has ${qwen}`);
      for (const [, path = ''] of command.matchAll(/--set ([\w.]+)=/g)) {
        const value = path.split('.').reduce<unknown>((of, name) => (of as Record<string, unknown>)?.[name], values);
        assert.notEqual(value, undefined, command);
      }
    }
  });

  it('an excluded command of Temper is understood, and fails only for what this machine does not have', async () => {
    await using folder = await temporaryFolder();
    await aCheckout(folder.path);
    await mkdir(join(folder.path, 'work'));
    await cp(join(ROOT, 'manifests/skills/release-notes'), join(folder.path, 'release-notes'), { recursive: true });
    const check = async (command: string): Promise<void> => {
      const exclusion = excludedBy(command);
      if (exclusion === undefined || !('fails' in exclusion)) return;
      const { code, stderr } = await runLine(command.replaceAll(EXAMPLE_HOST, 'localhost:1'), folder.path);
      assert.notEqual(code, 0, command);
      assert.match(stderr, exclusion.fails, command);
    };
    await Promise.all([...new Set(COMMANDS)].map(check));
  });

  for (const [command, { replace, agent }] of Object.entries(SERVING)) {
    it(`the documented command that serves ${agent} starts, and ends with an interrupt`, async () => {
      await using folder = await temporaryFolder();
      await aCheckout(folder.path);
      const [, ...args] = command.replace(...replace).split(' ');
      const { child, ended } = startTemper(args, { cwd: folder.path, keepOpen: true });
      let notes = '';
      child.stderr?.on('data', (chunk: string) => {
        notes += chunk;
        if (notes.includes(`note: serving ${agent};`)) child.kill('SIGINT');
      });
      const { code, stderr } = await ended;
      assert.equal(code, 130, stderr);
    });
  }

  it('every local command exits and prints as its page states', async () => {
    await using folder = await temporaryFolder();
    await aCheckout(folder.path);
    const demo = await runLine(`bin/node ${join(QUICKSTART, 'demo.ts')} manifests/quickstart`, folder.path);
    assert.equal(demo.code, 0, demo.stderr);
    for (const command of COMMANDS) {
      const expected = EXPECTED[command];
      if (expected === undefined) continue;
      const { append = '', input, code, output } = expected;
      const result = await runLine(`${command} ${append}`, folder.path, input);
      assert.equal(result.code, code, `${command}: ${result.stdout}${result.stderr}`);
      assert.match(result.stdout, output, command);
    }
  });

  it('the output of validate on the page of manifests is the real output', async () => {
    await using folder = await temporaryFolder();
    await aCheckout(folder.path);
    await mkdir(join(folder.path, 'policies'));
    const policy = [
      'apiVersion: temper.dev/v1alpha1',
      'kind: TrustPolicy',
      'metadata:',
      '  name: standard',
      'spec:',
      '  models:',
      '    judge: default/judge',
      '  level:',
      '    initial: standart',
    ];
    await writeFile(join(folder.path, 'policies/team.yaml'), policy.join('\n'));
    await cp(join(ROOT, 'manifests/quickstart/policy.yaml'), join(folder.path, 'policies/quickstart.yaml'));
    const result = await runLine(VALIDATE, folder.path);
    assert.equal(result.code, 1);
    const shown = BLOCKS.find(({ text: block }) => block.startsWith(`$ ${VALIDATE}\n`))?.text;
    assert.equal(shown, `$ ${VALIDATE}\n${result.stdout}`);
  });

  it('the documented probe of a model succeeds with a compatible server', async () => {
    await using folder = await temporaryFolder();
    await aCheckout(folder.path);
    const script = join(folder.path, 'script.yaml');
    await writeFile(script, 'rules: [{answer: {text: hello}}]\n');
    await using server = await startReplay({ script, clock: systemClock });
    const command = PROBE.replace('http://localhost:11434', server.url);
    const { code, stdout } = await runLine(command, folder.path);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /"type":"text","text":"hello"[\s\S]*"type":"end"/);
  });

  it('every documented kubectl temper command parses and fails only for its kubeconfig', async () => {
    await using folder = await temporaryFolder();
    await aCheckout(folder.path);
    const commands = new Set(COMMANDS.filter((command) => command.startsWith('kubectl temper ')));
    assert.ok(commands.size > 0);
    const check = async (command: string): Promise<void> => {
      const [own = ''] = command.split(' | ');
      const line = `${own.replace('kubectl temper', 'kubectl-temper')} --kubeconfig missing.yaml`;
      const { code, stderr } = await runLine(line, folder.path);
      assert.equal(code, 2, `${command}: ${stderr}`);
      assert.match(stderr, /--kubeconfig missing\.yaml does not exist/, command);
    };
    await Promise.all([...commands].map(check));
  });

  it('every documented make target exists', async () => {
    const makefile = await readFile(join(ROOT, 'Makefile'), 'utf8');
    const targets = new Set([...makefile.matchAll(/^([a-z-]+):/gm)].map(([, name]) => name));
    for (const { text: block } of BLOCKS) {
      for (const [, target] of block.matchAll(/(?:^|[(#$] ?)make (?:-s )?([a-z-]+)/gm)) {
        assert.ok(targets.has(target), `make ${target}`);
      }
    }
  });

  it('every documented providers file is valid', () => {
    const files = BLOCKS.filter(({ language, text: block }) => language === 'yaml' && /^providers:/m.test(block));
    assert.ok(files.length > 0);
    for (const { page, text: block } of files) assert.ok(parseNamedModels(page, parse(block)).providers.length > 0);
  });

  it('every documented set of chart values is valid', async () => {
    const schema = JSON.parse(await readFile(join(ROOT, 'charts/temper/values.schema.json'), 'utf8')) as object;
    const validate = new Ajv({ strict: false }).compile(schema);
    const values = BLOCKS.filter(({ language, text: block }) => language === 'yaml' && CHART_VALUES.test(block));
    assert.ok(values.length > 0);
    for (const { page, text: block } of values) {
      assert.ok(validate(parse(block)), `${page}: ${JSON.stringify(validate.errors)}`);
    }
  });

  it("every documented section of the gateway's models is valid", () => {
    const sections = BLOCKS.filter(({ language, text: block }) => language === 'yaml' && /^models:/m.test(block));
    assert.ok(sections.length > 0);
    for (const { text: block } of sections) {
      const { models } = parse(block) as { models: unknown };
      assert.ok(parseModelConfig(models).providers.length > 0);
    }
  });
});
