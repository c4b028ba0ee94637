import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type SendMessageRequest, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { a2aClientAt, asTask, messageRequest } from '../../support/a2a.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { plainEnvironment, temper } from '../command.ts';
import { openProject, type Project } from '../project.ts';
import { type ServedRun, serveRun } from './served-run.ts';

const agent = (name: string, rest: string): string => `---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: ${name}}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are ${name}."}
${rest}`;
const SERVED = `  grants: {tools: ["*"]}
  a2a:
    enabled: true
    description: Answers callers.
    callers: [{serviceAccount: planner}, {serviceAccount: web, namespace: other}]
`;
const MANIFESTS = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: standard}, autonomy: Full, rules: {requireApproval: ["code:write"]}}
${agent('served', SERVED)}${agent('private', '')}`;
const SCRIPT = `rules:
  - when: {lastUser: "On."}
    answer: {text: "Done."}
  - when: {lastUser: "Write.", turn: 1}
    answer: {toolCalls: [{id: w, name: file_write, arguments: {path: a.txt, text: a}}]}
  - when: {lastUser: "Wait."}
    answer: {text: "Late.", delayMilliseconds: 60000}
  - answer: {text: "Done."}
`;
const TOKENS = { 'default/planner': 'p'.repeat(40), 'other/web': 'w'.repeat(40) };
const FILE = join(plainEnvironment()['XDG_CONFIG_HOME'] ?? '', 'temper/a2a-callers.yaml');

const serve = (project: Project): Promise<ServedRun> => serveRun(project, ['--a2a', '0'], /A2A at (\S+?)\/v1\//);

const pathOf = (name: string): string => `/v1/a2a/namespaces/default/agents/${name}`;

function clientOf({ url }: ServedRun, token: string): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    return fetch(input, { ...init, headers });
  };
  return a2aClientAt(`${url}${pathOf('served')}`, fetchImpl);
}

const request = (messageId: string, text: string, contextId = '', returnImmediately = false): SendMessageRequest => ({
  ...messageRequest(text, { messageId, contextId }),
  configuration: returnImmediately
    ? { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately, historyLength: 1 }
    : undefined,
});
const shown = ({ status, artifacts }: Task): unknown[] => [status?.state, artifacts[0]?.parts[0]?.content?.value];
const DONE = [TaskState.TASK_STATE_COMPLETED, 'Done.'];

describe('agents of temper run over A2A', () => {
  let project: Project;
  let served: ServedRun;

  before(async () => {
    project = await openProject({ manifests: MANIFESTS, script: SCRIPT }, 'json');
    await mkdir(dirname(FILE), { recursive: true });
    await writeFile(FILE, JSON.stringify(TOKENS), { mode: 0o600 });
    served = await serve(project);
  });
  after(async () => {
    await served[Symbol.asyncDispose]();
    await project[Symbol.asyncDispose]();
  });

  it('a client of the SDK reads the card, asks, streams, and reads the task of a repeated message', async () => {
    const client = await clientOf(served, TOKENS['default/planner']);
    const card = await client.getAgentCard();
    assert.deepEqual([card.name, card.description], ['served', 'Answers callers.']);
    const task = asTask(await client.sendMessage(request('m-1', 'How many?', 'talk')));
    assert.deepEqual([task.contextId, ...shown(task)], ['talk', ...DONE]);
    assert.equal(asTask(await client.sendMessage(request('m-1', 'How many?', 'talk'))).id, task.id);
    await assert.rejects(client.sendMessage(request('m-1', 'Other.', 'talk')), /used for another message/);
    assert.deepEqual(shown(await client.getTask({ tenant: '', id: task.id })), DONE);
    const events: StreamResponse[] = [];
    for await (const event of client.sendMessageStream(request('m-2', 'And?', 'talk'))) events.push(event);
    const kinds = events.map(({ payload }) => payload?.$case);
    assert.deepEqual([kinds[0], ...kinds.slice(-2)], ['task', 'artifactUpdate', 'statusUpdate']);
    const session = await fileRecordStore(join(project.path, '.temper')).list('sessions');
    assert.deepEqual(
      session.map(({ name }) => /a2a_[0-9a-f]{32}\.talk$/.test(name)),
      [true],
    );
  });

  it('callers do not see each other, and an agent that does not list the caller is not found', async () => {
    const [one, two] = await Promise.all(Object.values(TOKENS).map((token) => clientOf(served, token)));
    assert.ok(one !== undefined && two !== undefined);
    const task = asTask(await one.sendMessage(request('m-3', 'Hello.', 'same')));
    await assert.rejects(two.getTask({ tenant: '', id: task.id }), /no task/);
    const other = asTask(await two.sendMessage(request('m-3', 'Hello.', 'same')));
    assert.notEqual(other.id, task.id);
    const post = async (name: string, token: string, body: string): Promise<string> => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' };
      const response = await fetch(`${served.url}${pathOf(name)}`, { method: 'POST', headers, body });
      return `${response.status} ${await response.text()}`;
    };
    const token = TOKENS['other/web'];
    const texts = [await post('private', token, '{}'), await post('unknown', token, '{}')];
    for (const text of texts) assert.match(text, /^404 .*TEMPER_NOT_FOUND.*its spec.a2a decides/);
    assert.match(await post('served', 'x'.repeat(40), '{}'), /^401 .*TEMPER_TOKEN_INVALID/);
    assert.match(await post('served', token, 'no json'), /^400 .*TEMPER_REQUEST_INVALID/);
    assert.match(await post('served', token, `[${'0,'.repeat(20_000)}0]`), /^413 .*TEMPER_REQUEST_TOO_LARGE/);
    assert.match(await post('served', token, `"${'x'.repeat(600_000)}"`), /^413 /);
    assert.match(await post('served', token, '{}'), /^200 .*-32600/);
    for (const path of ['/', pathOf('served'), `${pathOf('served')}/tasks`, '/v1/a2a/../x'])
      assert.equal(
        (await fetch(`${served.url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status,
        404,
      );
  });

  it('a task waits for an approval, and another one is canceled while the model works on it', async () => {
    const client = await clientOf(served, TOKENS['default/planner']);
    const parked = asTask(await client.sendMessage(request('m-4', 'Write.', 'writes')));
    assert.equal(parked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const working = asTask(await client.sendMessage(request('m-5', 'Wait.', 'waits', true)));
    const isWorking = async (): Promise<boolean> =>
      (await client.getTask({ tenant: '', id: working.id })).status?.state === TaskState.TASK_STATE_WORKING;
    await poll('the state working', isWorking);
    const canceled = await client.cancelTask({ tenant: '', id: working.id, metadata: undefined });
    assert.equal(canceled.status?.state, TaskState.TASK_STATE_CANCELED);
    await assert.rejects(client.cancelTask({ tenant: '', id: working.id, metadata: undefined }), /cannot be canceled/);
    assert.deepEqual(shown(asTask(await client.sendMessage(request('m-6', 'On.', 'waits')))), DONE);
    const [waiting] = await fileRecordStore(join(project.path, '.temper')).list('approvalrequests');
    const denied = await temper(['deny', waiting?.name ?? '', '--reason', 'no'], { cwd: project.path });
    assert.equal(denied.code, 0, denied.stderr);
    const ended = async () => client.getTask({ tenant: '', id: parked.id });
    assert.deepEqual(shown(await pollValue('the end', ended, (task) => shown(task)[1] !== undefined)), DONE);
  });

  it('a task outlives a kill of the process, and an interrupt ends the server', async () => {
    const client = await clientOf(served, TOKENS['default/planner']);
    const task = asTask(await client.sendMessage(request('m-7', 'Wait.', 'kept', true)));
    await served.end('SIGKILL');
    served = await serve(project);
    const next = await clientOf(served, TOKENS['default/planner']);
    assert.equal(asTask(await next.sendMessage(request('m-7', 'Wait.', 'kept', true))).id, task.id);
    await next.cancelTask({ tenant: '', id: task.id, metadata: undefined });
    assert.equal((await next.getTask({ tenant: '', id: task.id })).status?.state, TaskState.TASK_STATE_CANCELED);
    assert.equal(await served.end('SIGINT'), 130);
  });

  it('--a2a without --serve, and tokens that others can read, are refused', async () => {
    const idle = await project.run('--a2a', '0', '-m', 'x').ended;
    assert.equal(idle.code, 2);
    assert.match(idle.stderr, /--a2a works with --serve only/);
    await chmod(FILE, 0o644);
    const refused = await project.run('--serve', '--a2a', '0').ended;
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, /a2a-callers\.yaml/);
    assert.ok(!refused.stderr.includes('pppp'));
    await writeFile(FILE, '{"planner": "short"}');
    await chmod(FILE, 0o600);
    assert.match((await project.run('--serve', '--a2a', '0').ended).stderr, /"planner" is not NAMESPACE/);
  });
});
