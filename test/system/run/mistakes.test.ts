import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { runCommandLine } from '../../../src/cli/command-line.ts';
import type { CliIo } from '../../../src/cli/io.ts';
import { temporaryFolder } from '../command.ts';

const AGENT = `apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: strict}
  model: {primary: default/default}
  prompt: {system: You read files.}
`;
const POLICY = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: strict}
spec:
  level: {initial: restricted, ceiling: restricted}
`;
const BOTH = `${AGENT}---\n${POLICY}`;
const FILES: Readonly<Record<string, string>> = {
  'agent.yaml': BOTH,
  'script.yaml': 'rules:\n  - when: {lastUser: hello}\n    answer: {text: Done.}\n',
  'lone.yaml': AGENT,
  'elsewhere.yaml': `${AGENT}---\n${POLICY.replace('{name: strict}', '{name: strict, namespace: other}')}`,
  'crlf.yaml': BOTH.replaceAll('\n', '\r\n'),
  'bom.yaml': `\u{feff}${BOTH}`,
  'tabs.yaml': BOTH.replaceAll('\n  ', '\n\t'),
  'twice.yaml': `${BOTH}---\n${POLICY}`,
  'two.yaml': `${BOTH}---\n${AGENT.replace('name: analyst', 'name: writer')}`,
  'kind.yaml': BOTH.replace('kind: Agent', 'kind: Agnet'),
  'field.yaml': BOTH.replace('prompt:', 'promt:'),
  'level.yaml': BOTH.replace('initial: restricted', 'initial: elevated'),
  'quota.yaml': `${BOTH}  quotas: {tokensPerHour: 100k}\n`,
  'alone/policy.yaml': POLICY,
  'project/agent.yaml': BOTH,
  'project/.temper/lock.json': '{}',
  'project/.github/workflow.yaml': 'on: push\n',
  'chart/values.yaml': 'image:\n  tag: v1\n',
  'chart/agent.yaml': BOTH,
  'kustomized/kustomization.yaml': 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
  'kustomized/values.yaml': 'replicas: 2\n',
  'kustomized/agent.yaml': BOTH,
  'providers.yaml': 'provider: []\n',
  'broken.yaml': 'a: [1\n',
  'short.yaml': 'rules:\n  - when: {lastUser: goodbye}\n    answer: {text: Bye.}\n',
  'notes/readme.txt': 'notes\n',
  'state/lock.json': '{}',
};

interface Mistake {
  name: string;
  /** Words of the command line; `RUN` stands for a run of agent.yaml with its script. */
  words: readonly string[];
  code: number;
  /** Matches the text on standard error; for a mistake that a report on standard output names, the text there. */
  text: RegExp;
  input?: string;
  environment?: Record<string, string>;
}

const RUN = ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '--state', 'new-state'] as const;
const runOf = (file: string): string[] => ['run', '-f', file, '-m', 'hello', '--model-script', 'script.yaml'];
const inRun = (...words: string[]): string[] => [...RUN, '-m', 'hello', ...words];

const MANIFESTS: readonly Mistake[] = [
  {
    name: 'a file that does not exist',
    words: runOf('none.yaml'),
    code: 2,
    text: /UNREADABLE: .*none\.yaml does not exist/,
  },
  {
    name: 'a folder without an agent',
    words: runOf('alone'),
    code: 2,
    text: /contain no Agent; name the file or folder .* with -f/,
  },
  { name: 'an empty file name', words: runOf(''), code: 2, text: /--filename is empty; give it a value/ },
  { name: 'no -f', words: ['run', 'agent.yaml', '-m', 'hello'], code: 2, text: /required option '-f, --filename/ },
  { name: 'a wrong kind', words: runOf('kind.yaml'), code: 1, text: /kind\.yaml:2:\d+[\s\S]*did you mean Agent\?/ },
  { name: 'a typing error in a field', words: runOf('field.yaml'), code: 1, text: /did you mean "prompt"\?/ },
  {
    name: 'a level above the ceiling',
    words: runOf('level.yaml'),
    code: 1,
    text: /level\.yaml:\d+:\d+ {2}TrustPolicy\/strict spec\.level/,
  },
  {
    name: 'a quota with a suffix',
    words: runOf('quota.yaml'),
    code: 1,
    text: /tokensPerHour[\s\S]*without quotes or suffix/,
  },
  { name: 'tabs', words: runOf('tabs.yaml'), code: 1, text: /tabs\.yaml:\d+:1[\s\S]*indent with spaces/ },
  {
    name: 'one object twice',
    words: runOf('twice.yaml'),
    code: 1,
    text: /TrustPolicy "strict" .* already defined at .*twice\.yaml:\d+[\s\S]*keep one/,
  },
  { name: 'broken YAML', words: runOf('broken.yaml'), code: 1, text: /broken\.yaml:\d+:\d+/ },
  {
    name: 'an agent without its policy',
    words: runOf('lone.yaml'),
    code: 1,
    text: /TrustPolicy "strict".*not in the manifests; add its file with -f/,
  },
  {
    name: 'a policy of another namespace',
    words: runOf('elsewhere.yaml'),
    code: 1,
    text: /exists in namespace "other", and an agent uses policies of its own namespace, "default"/,
  },
  {
    name: 'a missing policy in validate',
    words: ['validate', '-f', 'lone.yaml'],
    code: 0,
    text: /note: TrustPolicy "strict" of namespace "default" is not in these files/,
  },
  {
    name: 'two agents',
    words: runOf('two.yaml'),
    code: 2,
    text: /contain 2 agents; found: default\/analyst, default\/writer\. Choose the one that gets your messages with --agent/,
  },
  {
    name: 'an unknown agent',
    words: inRun('--agent', 'nosuch'),
    code: 2,
    text: /no agent named "nosuch"; found: default\/analyst/,
  },
  {
    name: 'an unknown namespace',
    words: inRun('--namespace', 'prod'),
    code: 2,
    text: /no agent in namespace "prod"; found: default\/analyst/,
  },
  {
    name: 'only files of other groups',
    words: ['validate', '-f', 'kustomized/kustomization.yaml'],
    code: 2,
    text: /no manifests in kustomized/,
  },
  {
    name: 'policy explain without its policy',
    words: ['policy', 'explain', '-f', 'elsewhere.yaml', '--model', 'a/b'],
    code: 2,
    text: /exists in namespace "other"/,
  },
  {
    name: 'policy explain with JSON that is broken',
    words: ['policy', 'explain', '-f', 'agent.yaml', '--tool', 'file_read', '--input', '{"a":1,}'],
    code: 2,
    text: /--input is not JSON: .*position 7/,
  },
  {
    name: 'policy explain without a question',
    words: ['policy', 'explain', '-f', 'agent.yaml'],
    code: 2,
    text: /exactly one of --tool, --host/,
  },
  {
    name: 'policy explain with an unknown level',
    words: ['policy', 'explain', '-f', 'agent.yaml', '--model', 'a/b', '--level', 'high'],
    code: 2,
    text: /--level "high" is not a level of TrustPolicy "strict"; it has sandboxed/,
  },
];

const RUNS: readonly Mistake[] = [
  {
    name: 'no key',
    words: ['run', '-f', 'agent.yaml', '-m', 'hello'],
    code: 1,
    text: /set OPENAI_API_KEY or ANTHROPIC_API_KEY, or give --providers FILE or --model-script FILE/,
  },
  {
    name: 'a key with a line break inside',
    words: ['run', '-f', 'agent.yaml', '-m', 'hello', '-o', 'text', '--state', 'key-state'],
    code: 1,
    environment: { OPENAI_API_KEY: 'secret-one\nsecret-two' },
    text: /provider "openai" has no key: the variable OPENAI_API_KEY contains a space, a line break/,
  },
  {
    name: 'a script that does not exist',
    words: ['run', '-f', 'agent.yaml', '--model-script', 'none.yaml', '-m', 'hello'],
    code: 2,
    text: /USAGE: --model-script none\.yaml does not exist/,
  },
  {
    name: 'a folder as the script',
    words: ['run', '-f', 'agent.yaml', '--model-script', 'notes', '-m', 'hello'],
    code: 2,
    text: /--model-script notes is a folder; name a file/,
  },
  {
    name: 'manifests as the script',
    words: ['run', '-f', 'agent.yaml', '--model-script', 'agent.yaml', '-m', 'hello'],
    code: 1,
    text: /agent\.yaml:\d+: a replay script is one YAML document/,
  },
  {
    name: 'a script without a matching rule',
    words: [
      'run',
      '-f',
      'agent.yaml',
      '--model-script',
      'short.yaml',
      '-m',
      'hello',
      '-o',
      'text',
      '--state',
      'short-state',
    ],
    code: 1,
    text: /no rule/,
  },
  {
    name: 'a providers file that does not exist',
    words: ['run', '-f', 'agent.yaml', '--providers', 'none.yaml', '-m', 'hello'],
    code: 2,
    text: /USAGE: --providers none\.yaml does not exist/,
  },
  {
    name: 'a providers file with a typing error',
    words: ['run', '-f', 'agent.yaml', '--providers', 'providers.yaml', '-m', 'hello'],
    code: 1,
    text: /providers\.yaml: provider is not known here; known are providers, aliases/,
  },
  {
    name: 'a providers file that is not YAML',
    words: ['run', '-f', 'agent.yaml', '--providers', 'broken.yaml', '-m', 'hello'],
    code: 1,
    text: /MANIFEST_INVALID: .*broken\.yaml: /,
  },
  {
    name: 'providers and a script',
    words: inRun('--providers', 'providers.yaml'),
    code: 2,
    text: /'--model-script <file>' cannot be used with option '--providers <file>'/,
  },
  { name: 'an empty message', words: [...RUN, '-m', ''], code: 2, text: /--message is empty/ },
  { name: 'a message of spaces', words: [...RUN, '-m', '  '], code: 2, text: /--message is empty/ },
  {
    name: 'an empty message from standard input',
    words: [...RUN, '-m', '-'],
    input: '\n',
    code: 2,
    text: /--message is empty; write a message/,
  },
  { name: 'a message with a NUL character', words: [...RUN, '-m', '-'], input: 'a\0b', code: 2, text: /NUL character/ },
  {
    name: 'a message that is too long',
    words: [...RUN, '-m', '-'],
    input: 'x'.repeat(1_048_577),
    code: 2,
    text: /longer than 1048576 bytes; store the text as a file in --workspace/,
  },
  { name: 'standard input twice', words: [...RUN, '-m', '-', '-m', '-'], code: 2, text: /-m - is given twice/ },
  { name: 'no message at all', words: RUN, code: 2, text: /standard input has no message; give one with -m/ },
  { name: 'an argument without an option', words: inRun('more'), code: 2, text: /too many arguments for 'run'/ },
  {
    name: 'an unknown option',
    words: inRun('--mesage', 'x'),
    code: 2,
    text: /unknown option '--mesage'[\s\S]*Did you mean --message\?/,
  },
  { name: 'an unknown format', words: inRun('-o', 'yaml'), code: 2, text: /Allowed choices are text, json/ },
  {
    name: 'a malformed session',
    words: inRun('--session', 'bad id /../x'),
    code: 2,
    text: /SESSION_INVALID: "bad id \/\.\.\/x".*use 1 to 128 letters/,
  },
  { name: 'an empty session', words: inRun('--session', ''), code: 2, text: /--session is empty/ },
  {
    name: 'nothing to continue',
    words: inRun('--continue'),
    code: 1,
    text: /agent "analyst" has no session in new-state; leave --continue out/,
  },
  {
    name: 'a session and --continue',
    words: inRun('--continue', '--session', 'a'),
    code: 2,
    text: /cannot be used with option '--continue'/,
  },
  {
    name: 'a workspace that does not exist',
    words: inRun('--workspace', 'none'),
    code: 2,
    text: /--workspace .*none does not exist; name an existing folder/,
  },
  {
    name: 'a file as the workspace',
    words: inRun('--workspace', 'agent.yaml'),
    code: 2,
    text: /--workspace .*is not a folder/,
  },
];

const STATE: readonly Mistake[] = [
  {
    name: 'a configuration of a role that does not exist',
    words: ['serve', 'gateway', '--config', 'nosuch.yaml'],
    code: 2,
    text: /TEMPER_USAGE: --config nosuch\.yaml does not exist/,
  },
  {
    name: 'a folder as the configuration of a role',
    words: ['serve', 'operator', '--config', 'notes'],
    code: 2,
    text: /TEMPER_USAGE: --config notes is a folder; name a file/,
  },
  {
    name: 'a folder with Helm values and without a kustomization',
    words: ['validate', '-f', 'chart'],
    code: 1,
    text: /values\.yaml[^]*this is not a manifest: .*such as Helm values\?[^]*name the manifests with -f instead of their folder/,
  },
  {
    name: 'a file as the state folder',
    words: [...runOf('agent.yaml'), '--state', 'agent.yaml'],
    code: 2,
    text: /STATE_UNUSABLE: .*agent\.yaml is not a folder; give another one with --state/,
  },
  {
    name: 'a state folder below a file',
    words: [...runOf('agent.yaml'), '--state', 'agent.yaml/x'],
    code: 2,
    text: /STATE_UNUSABLE: .*is not a folder/,
  },
  {
    name: 'the project as the state folder',
    words: [...runOf('agent.yaml'), '--state', 'notes'],
    code: 2,
    text: /STATE_UNUSABLE: .*notes .*has other files and is not a state folder; give another one/,
  },
  {
    name: 'an empty state folder name',
    words: [...runOf('agent.yaml'), '--state', ''],
    code: 2,
    text: /--state is empty/,
  },
  {
    name: 'a state folder that does not exist',
    words: ['get', 'tools', '--state', 'none'],
    code: 2,
    text: /STATE_NOT_FOUND: the state folder .*none does not exist; give the folder of a run/,
  },
  {
    name: 'an audit of a folder that does not exist',
    words: ['audit', '--state', 'none'],
    code: 2,
    text: /STATE_NOT_FOUND/,
  },
  {
    name: 'an audit of another folder',
    words: ['audit', '--state', 'notes'],
    code: 2,
    text: /notes is not a state folder/,
  },
  {
    name: 'an unknown kind',
    words: ['get', 'agnets', '--state', 'state'],
    code: 2,
    text: /"agnets" is not a kind; .*agents/,
  },
  { name: 'no kind', words: ['get', '--state', 'state'], code: 2, text: /missing required argument 'kinds'/ },
  {
    name: 'an unknown object',
    words: ['describe', 'tool', 'nosuch', '--state', 'state'],
    code: 1,
    text: /no tools named "nosuch"; there are none/,
  },
  {
    name: 'an unknown conversation',
    words: ['trace', 'nosuch', '--state', 'state'],
    code: 1,
    text: /no conversation is stored for session "nosuch"; there are none/,
  },
  {
    name: 'a decision without a reason',
    words: ['approve', 'x', '--state', 'state'],
    code: 2,
    text: /required option '--reason <text>'/,
  },
  {
    name: 'a decision with an empty reason',
    words: ['deny', 'x', '--reason', ' ', '--state', 'state'],
    code: 2,
    text: /--reason is empty/,
  },
  {
    name: 'an unknown request',
    words: ['approve', 'x', '--reason', 'y', '--state', 'state'],
    code: 1,
    text: /no approval requests named "x"; there are none/,
  },
  {
    name: 'an unknown tool to demote',
    words: ['demote', 'x', '--reason', 'y', '--state', 'state'],
    code: 1,
    text: /no tools named "x"/,
  },
];

const TOOLS: readonly Mistake[] = [
  {
    name: 'a tool file that does not exist',
    words: ['tool', 'check', 'none.yaml'],
    code: 2,
    text: /the tool file none\.yaml does not exist/,
  },
  {
    name: 'a folder as a tool file',
    words: ['tool', 'check', 'notes'],
    code: 2,
    text: /the tool file notes is a folder; name a file/,
  },
  {
    name: 'manifests as a tool file',
    words: ['tool', 'check', 'agent.yaml'],
    code: 1,
    text: /✗ Agent\/analyst[\s\S]*is not an EmergentTool; name the files of tools only/,
  },
  {
    name: 'a package that does not exist',
    words: ['tool', 'import', 'none.yaml', '--agent', 'a', '--state', 'state'],
    code: 2,
    text: /the package none\.yaml does not exist/,
  },
  {
    name: 'an unknown tool to export',
    words: ['tool', 'export', 'nosuch', '--state', 'state'],
    code: 1,
    text: /no tool "nosuch" in state; there are none/,
  },
  {
    name: 'an input file that does not exist',
    words: ['tool', 'call', 'agent.yaml', '--input', '@none.json'],
    code: 2,
    text: /--input none\.json does not exist/,
  },
  { name: 'a typing error in a verb', words: ['rnu'], code: 2, text: /unknown command 'rnu'[\s\S]*Did you mean run\?/ },
  { name: 'a verb of another verb', words: ['tool', 'validate'], code: 2, text: /unknown command 'validate'/ },
  {
    name: 'a project folder that is a file',
    words: ['init', 'agent.yaml'],
    code: 2,
    text: /cannot be written: it, or a part of its path, is not a folder; choose another folder/,
  },
  {
    name: 'a project folder below /proc',
    words: ['init', '/proc/temper-none'],
    code: 2,
    text: /cannot be written: the file system does not allow new folders there; choose another folder/,
  },
  {
    name: 'a port that is not a number',
    words: ['model', 'replay', '--script', 'script.yaml', '--port', 'http'],
    code: 2,
    text: /not a non-negative integer/,
  },
  {
    name: 'a replay script that does not exist',
    words: ['model', 'replay', '--script', 'none.yaml'],
    code: 2,
    text: /--script none\.yaml does not exist/,
  },
  {
    name: 'a cluster verb without a cluster',
    words: ['get', 'agents', '--kubeconfig', 'none.yaml'],
    code: 2,
    text: /--kubeconfig none\.yaml does not exist/,
  },
];

describe('a mistake on the command line', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder();
    for (const [name, text] of Object.entries(FILES)) {
      // Whatever the umask of the developer is: a folder that its group may write to is refused.
      await mkdir(dirname(join(folder.path, name)), { recursive: true, mode: 0o755 });
      await writeFile(join(folder.path, name), text, { mode: 0o644 });
    }
  });
  after(() => folder[Symbol.asyncDispose]());

  async function run(words: readonly string[], input = '', environment: Record<string, string> = {}) {
    const printed = { out: '', error: '' };
    const io: CliIo = {
      out: (text) => void (printed.out += text),
      error: (text) => void (printed.error += text),
      stdin: () => Promise.resolve(input),
      lines: () => Readable.from(input.split('\n')),
      cwd: folder.path,
      environment: { XDG_CONFIG_HOME: join(folder.path, 'config'), ...environment },
      colour: false,
      terminal: false,
      signal: new AbortController().signal,
    };
    return { code: await runCommandLine(words, io), ...printed };
  }

  for (const { name, words, code, text, input, environment } of [...MANIFESTS, ...RUNS, ...STATE, ...TOOLS]) {
    it(`${name} is answered with the cause and the next step, and exit code ${code}`, async () => {
      const result = await run(words, input, environment);
      assert.equal(result.code, code, result.error);
      // A report is on standard output: the problems that `validate` and `tool check` find, and what happens in a run.
      assert.match(`${result.error}${result.out}`, text);
      assert.doesNotMatch(`${result.error}${result.out}`, /TEMPER_INTERNAL|\n {4}at |ENOENT|EISDIR|secret-one/);
    });
  }

  for (const file of ['agent.yaml', 'crlf.yaml', 'bom.yaml', 'kustomized', 'project']) {
    it(`${file} is no mistake`, async () => {
      const { code, out, error } = await run([...runOf(file), '-o', 'text', '--state', `state-of-${file}`]);
      assert.equal(code, 0, error);
      assert.match(out, /◂ analyst: Done\./);
    });
  }

  it('a file that is given twice is read once', async () => {
    const { code, error } = await run([...RUN.slice(0, 3), 'agent.yaml', ...RUN.slice(3), '-m', 'hello']);
    assert.equal(code, 0, error);
  });

  it('a final line break of standard input is not part of the message', async () => {
    const { out } = await run([...RUN, '-m', '-', '-o', 'text'], 'hello\n');
    assert.match(out, /▸ You: hello\n/);
  });
});
