import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { StampedEvent } from '../../../src/tools/events.ts';
import { TraceCollector } from '../../support/trace-collector.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { QUICKSTART, ROOT, type RunningCommand, startTemper, temper } from '../command.ts';
import { DOUBLER, doublingAgent, doublingScript } from '../doubling-agent.ts';
import { openProject } from '../project.ts';
import { pollAssertion } from '../../support/poll.ts';

const TOOLS = ['file_*', 'doubler'];
const APPROVAL = `  rules: {requireApproval: ["code:read"]}\n`;
const SCRIPT = doublingScript(`  - when: {lastUser: "at once", turn: 1}
    answer:
      toolCalls:
        - {id: made, name: forge_tool, arguments: ${DOUBLER}}
        - {id: doubled, name: doubler, arguments: {n: 21}}
  - when: {lastUser: "at once", turn: 2}
    answer: {text: "It is {{toolCall.doubled.n}}."}
  - when: {lastUser: "read", turn: 1}
    answer: {toolCalls: [{id: text, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "read", lastTool: {isError: true}}
    answer: {text: "Refused: {{lastTool.error.code}}"}
  - when: {lastUser: "read", turn: 2}
    answer: {text: "It says {{toolCall.text.text}}"}
  - when: {lastUser: "wait"}
    answer: {text: "late", delayMilliseconds: 60000}
`);

async function aProject(policyRest = '') {
  const project = await openProject({ manifests: doublingAgent(TOOLS, policyRest), script: SCRIPT }, 'json');
  const traced = (endpoint: string, ...rest: string[]): RunningCommand =>
    startTemper([...project.runArguments, ...rest], {
      cwd: project.path,
      environment: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint },
    });
  return { ...project, traced };
}

function requestOf(stdout: string): { request: string } {
  const requested = jsonLines<StampedEvent>(stdout).find((event) => event.type === 'approval-requested');
  assert.ok(requested?.type === 'approval-requested', stdout);
  return requested;
}

function replies(stdout: string): string[] {
  return jsonLines<StampedEvent>(stdout).flatMap((event) => (event.type === 'session-end' ? [event.reply] : []));
}

/** Waits until the command has printed an event of the type. */
function waitForEvent(running: RunningCommand, type: StampedEvent['type']): Promise<StampedEvent> {
  return pollAssertion(`event ${type}`, () => {
    const found = jsonLines<StampedEvent>(running.printed()).find((event) => event.type === type);
    assert.ok(found !== undefined, running.printed());
    return found;
  });
}

/** Makes every session of the project look unused for years. */
async function ageSessions(folder: string): Promise<void> {
  const sessions = join(folder, '.temper/sessions');
  const documents = (await readdir(sessions)).filter((name) => name.endsWith('.json'));
  assert.ok(documents.length > 0);
  for (const name of documents) {
    const stored = JSON.parse(await readFile(join(sessions, name), 'utf8')) as object;
    await writeFile(join(sessions, name), JSON.stringify({ ...stored, usedAt: '2020-01-01T00:00:00.000Z' }));
  }
}

describe('temper run', () => {
  it('a run parks a call that needs an approval, says how to go on, and a later run makes the approved call', async () => {
    await using project = await aProject(APPROVAL);
    const parked = await project.run('--session', 's-1', '-m', 'please read', '-m', 'hello').ended;
    const requested = requestOf(parked.stdout);
    assert.equal(parked.code, 3, parked.stderr);
    assert.match(parked.stderr, new RegExp(`temper approve ${requested.request} .*[\\s\\S]*--session s-1`));
    assert.deepEqual(replies(parked.stdout), [''], 'the message after it is not sent');
    await ageSessions(project.path);
    const undecided = await project.run('--continue').ended;
    assert.equal(undecided.code, 3, `a parked turn keeps its session, however long it waits: ${undecided.stderr}`);
    assert.equal(requestOf(undecided.stdout).request, requested.request);
    const listed = await project.temper('get', 'requests');
    assert.match(listed.stdout, new RegExp(`${requested.request} +ToolCall +file_read`));
    const wide = await project.temper('get', 'requests', '-o', 'wide');
    assert.match(wide.stdout, /SUMMARY +ARGUMENTS[\s\S]*\{"path":"[^"]+"\}/);
    const described = await project.temper('describe', 'request', requested.request);
    assert.match(described.stdout, /arguments: '?\{"path":/);
    const approved = await project.temper('approve', requested.request, '--reason', 'only a note');
    assert.equal(approved.code, 0, approved.stderr);
    const { code, stdout, stderr } = await project.run('--continue', '-m', 'thanks').ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(replies(stdout), ['It says hello', 'Done.']);
    const { runUsage } = jsonLines<{ runUsage: Record<string, number> }>(stdout).at(-1) ?? {};
    assert.deepEqual(Object.keys(runUsage ?? {}), ['turns', 'toolCalls', 'tokens'], 'a replayed run has no cost');
    assert.ok(Number(runUsage?.['turns']) >= 2 && Number(runUsage?.['tokens']) > 0, stdout);
    assert.doesNotMatch(stdout, /"approval-requested"/, 'the call no longer waits');
    const used = await project.temper('describe', 'request', requested.request);
    assert.match(used.stdout, /usedAt:/);
    const again = await project.temper('approve', requested.request, '--reason', 'twice');
    assert.equal(again.code, 2, 'a decision is final');
  });

  it('a denied call fails when the run continues', async () => {
    await using project = await aProject(APPROVAL);
    const { request } = requestOf((await project.run('--session', 's-1', '-m', 'please read').ended).stdout);
    await project.temper('deny', request, '--reason', 'not today');
    const { stdout } = await project.run('--session', 's-1').ended;
    assert.deepEqual(replies(stdout), ['Refused: TEMPER_APPROVAL_DENIED']);
  });

  it('a model forges a tool and calls it in the same answer', async () => {
    await using project = await aProject();
    const { stdout, stderr } = await project.run('-m', 'at once').ended;
    assert.deepEqual(replies(stdout), ['It is 42.'], stderr);
  });

  it('a withheld source is in no file of the state folder, its tool works after a restart, and it goes with the tool', async () => {
    const marker = 'unmistakable_marker_text';
    const code = DOUBLER.replace(
      'return { n: 2 * input.n };',
      `const note = '${marker}';\\n  return { n: 2 * input.n };`,
    );
    const broken = code.replace('2 * input.n', 'note.length').replace('doubler', 'broken');
    const withheld = doublingAgent(TOOLS).replace('modes: [Sandbox]}', 'modes: [Sandbox], persistSource: false}');
    const script = SCRIPT.replaceAll(DOUBLER, code).replace(
      '  - answer: {text: "Done."}',
      `  - when: {lastUser: "wrong", turn: 1}\n    answer: {toolCalls: [{name: forge_tool, arguments: ${broken}}]}\n  - when: {lastUser: "say it"}\n    answer: {text: "const note = '${marker}';"}\n  - answer: {text: "Done."}`,
    );
    await using project = await openProject({ manifests: withheld, script }, 'json');
    const files = async () => {
      const state = join(project.path, '.temper');
      const names = await readdir(state, { recursive: true, withFileTypes: true });
      const all = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      return Promise.all(all.map(async (name) => ({ name, text: await readFile(name, 'latin1') })));
    };
    const messages = ['wrong', 'forge', 'double', 'say it'].flatMap((text) => ['-m', text]);
    const { code: exit, stdout, stderr } = await project.run('--session', 's-1', ...messages).ended;
    assert.equal(exit, 0, stderr);
    assert.ok(replies(stdout).includes('It is 42.'), stdout);
    assert.ok(
      jsonLines<StampedEvent>(stdout).some(({ type }) => type === 'forge-refused'),
      'a refusal may quote it too',
    );
    const leaks = (await files()).filter(({ text }) => text.includes(marker));
    assert.deepEqual(
      leaks.map(({ name }) => name),
      [],
    );
    assert.ok((await files()).some(({ name }) => name.includes('/sources/')));
    const later = await project.run('--session', 's-1', '-m', 'double').ended;
    assert.deepEqual(replies(later.stdout), ['It is 42.'], later.stderr);
    assert.equal((await project.temper('sessions', 'close', 's-1')).code, 0);
    assert.ok(!(await files()).some(({ name }) => name.includes('/sources/')), 'the source goes with the tool');
  });

  it('a closed session loses its history and its tools, takes no message, and leaves other sessions alone', async () => {
    await using project = await aProject();
    for (const session of ['s-1', 's-2']) {
      const { code, stderr } = await project.run('--session', session, '-m', 'forge').ended;
      assert.equal(code, 0, stderr);
    }
    const closed = await project.temper('sessions', 'close', 's-1', '-o', 'json');
    assert.equal(closed.code, 0, closed.stderr);
    assert.deepEqual(jsonLines(closed.stdout), [{ session: 's-1', closedBefore: false, tools: 1, endedMessages: [] }]);
    assert.match((await project.temper('sessions', 'close', 's-1')).stdout, /session\/s-1 was closed before/);
    assert.doesNotMatch((await project.temper('sessions')).stdout, /s-1/);
    const refused = await project.run('--session', 's-1', '-m', 'hello').ended;
    assert.match(refused.stdout, /TEMPER_SESSION_CLOSED/);
    assert.equal(refused.code, 1);
    assert.deepEqual(replies((await project.run('--session', 's-2', '-m', 'double').ended).stdout), ['It is 42.']);
    const left = await readdir(join(project.path, '.temper/sessions'), { recursive: true });
    assert.deepEqual(
      left.filter((name) => name.includes('s-1')),
      ['default_analyst_s-1.json'],
    );
    assert.equal((await project.temper('audit', 'verify')).code, 0);
    const unknown = await project.temper('sessions', 'close', 's-9');
    assert.match(unknown.stderr, /TEMPER_NOT_FOUND.*"s-9"/);
  });

  it('a session with a parked turn is closed only with --end-work, and its request expires', async () => {
    await using project = await aProject(APPROVAL);
    const { request } = requestOf((await project.run('--session', 's-1', '-m', 'please read').ended).stdout);
    const busy = await project.temper('sessions', 'close', 's-1');
    assert.match(busy.stderr, new RegExp(`TEMPER_SESSION_BUSY.*waits for ${request}`));
    assert.match((await project.temper('sessions')).stdout, /s-1/);
    const closed = await project.temper('sessions', 'close', 's-1', '--end-work');
    assert.match(closed.stdout, /0 tools removed, 1 message ended without an answer/);
    const late = await project.temper('approve', request, '--reason', 'late');
    assert.match(late.stderr, /TEMPER_APPROVAL_TIMEOUT/);
  });

  it('a tool that another terminal demotes is no longer available', async () => {
    await using project = await aProject();
    const first = await project.run('--session', 's-1', '-m', 'forge', '-m', 'double').ended;
    assert.deepEqual(replies(first.stdout), ['Done.', 'It is 42.'], first.stderr);
    const demoted = await project.temper('demote', 'doubler', '--reason', 'wrong for negatives');
    assert.equal(demoted.code, 0, demoted.stderr);
    const second = await project.run('--session', 's-1', '-m', 'double').ended;
    assert.deepEqual(replies(second.stdout), ['Refused: TEMPER_TOOL_NOT_FOUND']);
  });

  it('a run exports traces without message content when OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set', async () => {
    await using project = await aProject();
    await using collector = await TraceCollector.start();
    const { code, stdout, stderr } = await project.traced(collector.endpoint, '-m', 'please read').ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(replies(stdout), ['It says hello']);
    const [agent, ...others] = ['invoke_agent analyst', 'chat ', 'execute_tool file_read'].map((name) =>
      collector.spans.find((span) => span.name.startsWith(name)),
    );
    for (const span of others) {
      assert.equal(span?.traceId, agent?.traceId);
      assert.equal(span?.parentSpanId, agent?.spanId);
    }
    assert.equal(agent?.resource['service.name'], 'temper');
    assert.ok(!collector.bodies.some((body) => /please read|hello|note\.txt/.test(body)));
  });

  it('another process continues a session with its history and tools', async () => {
    await using project = await aProject();
    await project.run('--session', 's-1', '-m', 'forge').ended;
    const second = await project.run('--session', 's-1', '-m', 'double').ended;
    assert.deepEqual(replies(second.stdout), ['It is 42.']);
    const other = await project.run('--session', 's-2', '-m', 'double').ended;
    assert.deepEqual(replies(other.stdout), ['Refused: TEMPER_TOOL_NOT_FOUND']);
  });

  it('the state folder is locked by one process, and the error names it', async () => {
    await using project = await aProject();
    const first = project.run('-m', 'wait');
    await waitForEvent(first, 'turn-start');
    const second = await project.run('-m', 'hello').ended;
    assert.equal(second.code, 1);
    assert.match(second.stderr, /TEMPER_STATE_LOCKED.*process \d+/);
    first.child.kill('SIGINT');
    const { code } = await first.ended;
    assert.notEqual(code, null, 'SIGINT shuts the process down');
    const third = await project.run('-m', 'hello').ended;
    assert.deepEqual(replies(third.stdout), ['Done.'], third.stderr);
  });

  it('a run reads messages line by line from standard input', async () => {
    await using project = await aProject();
    const { code, stdout } = await temper(
      ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '--output', 'text'],
      { cwd: project.path, input: 'hello\n\nread it\n' },
    );
    assert.equal(code, 0);
    assert.match(stdout, /◂ analyst: Done\.[\s\S]*◂ analyst: It says hello/);
  });

  it('a run reads one message from standard input with -m -', async () => {
    await using project = await aProject();
    const args = ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '-m', '-', '--output', 'json'];
    const { stdout } = await temper(args, { cwd: project.path, input: 'please\nread' });
    assert.deepEqual(replies(stdout), ['It says hello']);
  });

  it('a run with an invalid manifest prints the error and creates no state', async () => {
    await using project = await aProject('  quotas: {tokensPerDay: "100k"}\n');
    const { code, stderr } = await project.run('-m', 'hello').ended;
    assert.equal(code, 1);
    assert.match(stderr, /agent\.yaml:\d+:\d+ {2}TrustPolicy\/strict spec\.quotas\.tokensPerDay/);
    assert.ok(!(await readdir(project.path)).includes('.temper'));
  });

  it('a run without a model names the missing settings', async () => {
    await using project = await aProject();
    const { code, stderr } = await temper(['run', '-f', 'agent.yaml', '-m', 'hello'], { cwd: project.path });
    assert.equal(code, 1);
    assert.match(stderr, /TEMPER_MODEL_UNAVAILABLE.*OPENAI_API_KEY/);
  });

  it('an agent can neither read nor write its manifests, state and script', async () => {
    await using project = await aProject();
    const script = `rules:
  - when: {turn: 1}
    answer:
      toolCalls:
        - {id: w, name: file_write, arguments: {path: agent.yaml, text: "elevated"}}
        - {id: s, name: file_write, arguments: {path: .temper/audit/records.jsonl, text: ""}}
        - {id: r, name: file_read, arguments: {path: script.yaml}}
  - answer: {text: "{{toolCall.w.error.code}} {{toolCall.s.error.code}} {{toolCall.r.error.code}}"}
`;
    await writeFile(join(project.path, 'script.yaml'), script);
    const { stdout } = await project.run('-m', 'try').ended;
    assert.deepEqual(replies(stdout), ['TEMPER_FILE_DENIED TEMPER_FILE_DENIED TEMPER_FILE_DENIED']);
    assert.ok((await readFile(join(project.path, 'agent.yaml'), 'utf8')).includes('kind: TrustPolicy'));
  });

  it('keys of the environment are redacted from all output', async () => {
    await using project = await aProject();
    const key = 'sk-proj-0123456789abcdef0123456789abcdef';
    await writeFile(join(project.path, 'note.txt'), `the key is ${key}`);
    const { stdout, stderr } = await startTemper(
      ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '--output', 'json', '-m', `read ${key}`],
      { cwd: project.path, environment: { OPENAI_API_KEY: key } },
    ).ended;
    assert.ok(!`${stdout}${stderr}`.includes(key));
    assert.match(stdout, /\[redacted\]/);
  });

  it('unknown commands and missing arguments exit with code 2', async () => {
    assert.equal((await temper(['rnu'])).code, 2);
    assert.equal((await temper(['run'])).code, 2);
    assert.equal((await temper(['get', 'nonsense'])).code, 2);
  });

  it('get and describe show tools, agents, sessions and policies', async () => {
    await using project = await aProject();
    await project.run('--session', 's-1', '-m', 'forge').ended;
    const shown = await project.temper('describe', 'tool', 'doubler');
    assert.match(shown.stdout, /execute\(input\)[\s\S]*verdicts:[\s\S]*approved: true/);
    assert.match((await project.temper('describe', 'agent', 'analyst')).stdout, /uniqueApproved: 1/);
    assert.match((await project.temper('get', 'sessions')).stdout, /s-1/);
    assert.match((await project.temper('get', 'policies')).stdout, /strict +restricted/);
    const missing = await project.temper('describe', 'tool', 'tripler');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /TEMPER_NOT_FOUND.*there are: doubler-/);
  });

  it('two agents with one state folder and one session id never share a conversation or a tool', async () => {
    await using project = await aProject();
    await writeFile(join(project.path, 'other.yaml'), doublingAgent(TOOLS).replace('name: analyst', 'name: writer'));
    await project.run('--session', 's-1', '-m', 'forge, and remember pin 4711').ended;
    const other = ['run', '-f', 'other.yaml', '--model-script', 'script.yaml', '--output', 'json', '--session', 's-1'];
    const called = await project.temper(...other, '-m', 'double');
    assert.match(called.stdout, /TEMPER_TOOL_NOT_FOUND/);
    const history = (agent: string): Promise<string> =>
      readFile(join(project.path, `.temper/sessions/default_${agent}_s-1/history.jsonl`), 'utf8');
    assert.match(await history('analyst'), /4711/);
    const others = await history('writer');
    assert.ok(!others.includes('4711') && others.startsWith('{"after":0,'), others);
    const own = await project.run('--session', 's-1', '-m', 'double').ended;
    assert.match(own.stdout, /It is 42/, 'the agent itself keeps its tool');
    assert.match((await project.temper('get', 'sessions')).stdout, /s-1 +analyst[\s\S]*s-1 +writer/);
  });

  it('a state folder of an earlier format is refused with the next step and stays as it is', async () => {
    await using project = await aProject();
    const session = join(project.path, '.temper/sessions/s-1.json');
    await mkdir(dirname(session), { recursive: true, mode: 0o755 });
    await writeFile(session, '{"openedAt":"2026-01-01T00:00:00Z","usedAt":"2026-01-01T00:00:00Z"}', { mode: 0o644 });
    const unsigned = await project.run('--session', 's-1', '-m', 'read').ended;
    assert.equal(unsigned.code, 2);
    assert.match(unsigned.stderr, /TEMPER_STATE_UNTRUSTED.*an earlier version wrote it.*temper audit --adopt/);
    assert.equal((await project.temper('audit', '--adopt')).code, 0);
    const { code, stderr } = await project.run('--session', 's-1', '-m', 'read').ended;
    assert.equal(code, 1);
    assert.match(stderr, /TEMPER_STATE_FORMAT.*sessions of an earlier version.*move .*sessions away/);
    assert.match(await readFile(session, 'utf8'), /openedAt/);
  });

  it('a run stores the events of each session', async () => {
    await using project = await aProject();
    await project.run('--session', 's-1', '-m', 'read').ended;
    const trace = await readFile(join(project.path, '.temper/sessions/default_analyst_s-1/trace.jsonl'), 'utf8');
    const [line] = jsonLines<{ events: StampedEvent[] }>(trace);
    const types = (line?.events ?? []).map(({ type }) => type);
    for (const type of ['message-received', 'tool-call', 'tool-result', 'turn-end', 'session-end'])
      assert.ok(types.includes(type as StampedEvent['type']), type);
  });
});

describe('tool packages', () => {
  it('a tool is exported, checked, called, imported and available in the next session', async () => {
    await using project = await aProject();
    await project.run('--session', 's-1', '-m', 'forge').ended;
    const exported = await project.temper('tool', 'export', 'doubler', '--file', 'doubler.yaml');
    assert.equal(exported.code, 0, exported.stderr);
    assert.equal((await project.temper('tool', 'check', 'doubler.yaml')).code, 0);
    const called = await project.temper('tool', 'call', 'doubler.yaml', '--input', '{"n": 4}', '--output', 'json');
    assert.match(called.stdout, /"output":\{"n":8\}/);
    const imported = await project.temper('tool', 'import', 'doubler.yaml', '--agent', 'analyst', '--state', 'other');
    assert.equal(imported.code, 0, imported.stderr);
    const { stdout } = await project.run('--state', 'other', '-m', 'double').ended;
    assert.deepEqual(replies(stdout), ['It is 42.']);
  });

  it('a redacted package cannot be imported', async () => {
    await using project = await aProject();
    await project.run('-m', 'forge').ended;
    await project.temper('tool', 'export', 'doubler', '--redact', '--file', 'redacted.yaml');
    assert.ok(!(await readFile(join(project.path, 'redacted.yaml'), 'utf8')).includes('execute'));
    const imported = await project.temper('tool', 'import', 'redacted.yaml', '--agent', 'analyst');
    assert.equal(imported.code, 1);
    assert.match(imported.stderr, /TEMPER_PACKAGE_INVALID/);
  });
});

describe('the audit chain of a state folder', () => {
  it('temper audit verifies the chain and names an edited record', async () => {
    await using project = await aProject();
    await project.run('-m', 'forge').ended;
    const intact = await project.temper('audit', '--subject', 'doubler');
    assert.match(intact.stdout, /tool\.accepted[\s\S]*chain intact/);
    const file = join(project.path, '.temper/audit/records.jsonl');
    await writeFile(file, (await readFile(file, 'utf8')).replace('agent/analyst', 'agent/analysT'));
    const broken = await project.temper('audit');
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /TEMPER_AUDIT_CHAIN_INVALID.*record 1/);
  });
});

describe('the sample manifests', () => {
  it('the samples and the quick start are valid', async () => {
    const { code, stdout } = await temper([
      'validate',
      '-f',
      'manifests/samples',
      '-f',
      join(QUICKSTART, 'agent.yaml'),
      '-f',
      join(QUICKSTART, 'policy.yaml'),
    ]);
    assert.equal(code, 0, stdout);
  });
});

describe('the examples of docs/reference/policy.md', () => {
  it('every example of policy explain runs as written and prints a decision', async () => {
    const page = await readFile(join(ROOT, 'docs/reference/policy.md'), 'utf8');
    const examples = page.split('\n').filter((line) => line.startsWith('temper policy explain'));
    assert.ok(examples.length >= 5);
    for (const example of examples) {
      const words = example.replaceAll("'", '').split(' ').slice(1);
      const { code, stdout, stderr } = await temper(words);
      assert.ok(code === 0 || code === 1, `${example}: ${stderr}`);
      assert.match(stdout, /^(Allow|Deny|Escalate) {2}by /);
    }
  });
});
