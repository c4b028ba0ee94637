import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
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
import { type CommandResult, plainEnvironment, QUICKSTART, ROOT, temporaryFolder } from './command.ts';

interface Expectation {
  code: number;
  /** Matches the standard output. */
  output: RegExp;
  /** Arguments for what the page leaves to the user, such as a provider key. */
  append?: string;
  input?: string;
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
  'temper tool import csv_rows.emergent-tool.yaml --agent analyst': {
    code: 0,
    output: /csv_rows .* passed every gate except the judge/,
    append: '--state .temper-demo',
  },
};

const VALIDATE = 'temper validate -f manifests/quickstart/agent.yaml -f policies/';

/** Commands that do not run here, with the reason. */
const EXCLUDED: readonly (readonly [command: RegExp, reason: string])[] = [
  [/^helm /, 'needs a cluster'],
  [/^kubectl (?!temper )/, 'needs a cluster'],
  [/^temper serve gateway --config gateway\.yaml$/, 'needs a cluster and NATS'],
  [/^export (KUBECONFIG|PATH)=/, 'needs root for a cluster on this machine'],
  [/^temper tool export csv_rows --connection /, 'needs a server for Git; the tests of Gitea run it'],
  [/^temper tool (?:push|pull) .*oci:/, 'needs an OCI registry; the tests of the registry run it'],
  [
    /^bin\/(?:temper|node) .*(?:manifests\/local\/|work-skills)/,
    'needs a model and services of its user; the tests of these samples run it with theirs',
  ],
  [/^temper skill (?:push|pull) /, 'needs a registry or a Git server; the tests of both run it'],
  [
    /^temper tool import csv_rows\.json --agent analyst --attestation /,
    'needs a package that was pulled from a registry',
  ],
  [/^temper import openfang agents\/ -o imported$/, 'needs manifests of OpenFang; the tests of the verb run it'],
  [/^npm install --prefix \/opt\/qwen /, 'needs a registry; the test of Qwen Code installs the same package'],
  [/^vllm serve /, 'is a program of another project'],
  [/^temper discover .* --providers /, 'needs an embedder; the tests of the verb run it'],
  [
    /^(?:bin\/)?temper mcp (?:tools|accept|manifest) (?:notes|search)\b/,
    'needs a server of the user; the tests of the verbs run it',
  ],
  [/^temper run --serve /, 'runs until an interrupt; the tests of the verb run it'],
];

const CHART_VALUES = /^(?:gateway|networkPolicies|tracing):/;

/** A folder with the commands of this checkout and a copy of its manifests. */
async function aCheckout(path: string): Promise<void> {
  await mkdir(join(path, 'bin'));
  for (const name of ['temper', 'kubectl-temper', 'node']) {
    await symlink(join(ROOT, 'bin', name), join(path, 'bin', name));
  }
  await cp(join(ROOT, 'manifests'), join(path, 'manifests'), { recursive: true });
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

const BLOCKS = await codeBlocks(ROOT);
const COMMANDS = commandsIn(BLOCKS).map(({ command }) => command);

describe('the commands of the documentation', () => {
  it('every documented command runs in a test or has a reason why it cannot', () => {
    const tested = new Set([...Object.keys(EXPECTED), PROBE, VALIDATE]);
    const unknown = COMMANDS.filter(
      (command) =>
        !tested.has(command) &&
        !/^(make|kubectl temper) /.test(command) &&
        !EXCLUDED.some(([pattern]) => pattern.test(command)),
    );
    assert.deepEqual(unknown, []);
    assert.deepEqual(
      [...tested].filter((command) => !COMMANDS.includes(command)),
      [],
      'these tested commands are on no page',
    );
    for (const [pattern, reason] of EXCLUDED) {
      assert.ok(
        COMMANDS.some((command) => pattern.test(command)),
        `no page has ${pattern}, which ${reason}`,
      );
    }
  });

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
