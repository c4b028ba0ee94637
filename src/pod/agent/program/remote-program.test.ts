import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import {
  calls,
  says,
  type ScriptedAnswer,
  scriptedLedger,
  scriptedLoop,
  scriptedModel,
} from '../../../agent/loop/scripted-loop.testing.ts';
import { pollAssertion } from '../../../../test/support/poll.ts';
import { AGENT_PROGRAM_NUMBERS } from '../../../api/cluster.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { ulids } from '../../../lib/ids.ts';
import { meteredStub } from '../../../models/pipeline.testing.ts';
import { connectedSandbox } from '../../../../test/support/connected-sandbox.ts';
import type { RoleProcess } from '../../pod.testing.ts';
import { prepareSocketFolder, socketPaths } from '../../socket/socket-folder.ts';
import { SandboxConnection } from '../sandbox-connection.ts';
import { PodPrograms, slotsOf } from './pod-programs.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
const PROGRAM = { name: 'fixture', folder: ROOT, program: 'test/fixtures/acp-agent/agent.ts' };
const MODEL = { primary: 'scripted/model', agent: 'fixture' };

/** The loop of an agent whose program runs in a sandbox container. */
async function aPod(answers: ScriptedAnswer[] = []) {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(await mkdtempDisposable(join(tmpdir(), 'temper-program-'))).path;
  const [run, homes, workspace] = ['run', 'homes', 'workspace'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [run, homes, workspace]) await mkdir(path);
  for (const number of AGENT_PROGRAM_NUMBERS) await mkdir(join(homes, String(number)));
  const namesIn = (number: number): Promise<string[]> => readdir(join(homes, String(number)));
  const homesNow = async (): Promise<string[]> => (await Promise.all(AGENT_PROGRAM_NUMBERS.map(namesIn))).flat();
  const uid = process.getuid?.() ?? 0;
  await prepareSocketFolder(run, uid);
  const options = { clock: systemClock, onChange: () => undefined };
  const sandbox = opening.use(await SandboxConnection.listen(socketPaths(run).socket, options));
  const paths = ['--run', run, '--workspace', workspace, '--program-homes', homes];
  const program = ['--program', JSON.stringify(PROGRAM), '--agent-uid', String(uid)];
  const roles: RoleProcess[] = [];
  opening.defer(() => void roles.at(-1)?.end('SIGKILL'));
  const start = async (): Promise<RoleProcess> => {
    const role = await connectedSandbox(sandbox, [...paths, ...program]);
    roles.push(role);
    return role;
  };
  const role = await start();
  const programs = opening.use(new PodPrograms({ sandbox, clock: systemClock, ids: ulids }));
  const ledger = scriptedLedger();
  const model = scriptedModel(answers);
  const { createProvider } = await programs.portOf({ model: MODEL });
  const provider = createProvider?.(meteredStub(model, { ledger, ids: ulids }));
  assert.ok(provider);
  const loop = scriptedLoop([], { look: () => 7 }, { provider, ledger });
  const send: typeof loop.send = (text, given) => loop.send(text, { milliseconds: 120_000, ...given });
  const open = opening.move();
  return { ...loop, send, model, role, start, homes: homesNow, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

describe('an agent program in the sandbox container', { timeout: 1_200_000 }, () => {
  it('a program answers with the model and the tools of its agent, keeps its process, and leaves no home', async () => {
    const pod = await aPod([
      [{ type: 'text', text: 'I look.' }, ...calls(['look', { at: 1 }])],
      (request) => says(`It is ${request.messages.at(-1)?.text ?? ''}.`),
    ]);
    await using _ = pod;
    assert.equal((await pod.send('go')).reply, 'It is 7.');
    const said = pod.events.flatMap((event) => (event.type === 'message' && !event.delta ? [event.text] : []));
    assert.deepEqual(said, ['I look.', 'It is 7.'], 'words come before the call that follows them');
    assert.equal((await pod.send('!prompts')).reply, 'prompt 2');
    assert.equal((await pod.homes()).length, 1);
    await assert.rejects(
      pod.send('!crash'),
      (error) => isTemperError(error, 'TEMPER_ACP_AGENT_FAILED') && /exit code 7/.test(error.message),
    );
    assert.deepEqual(await pod.homes(), []);
  });

  it('a program reaches nothing but its pipe and its home, and long requests and answers arrive whole', async () => {
    await using pod = await aPod();
    const probed = JSON.parse((await pod.send('!probe')).reply) as Record<string, string>;
    const { environment, home, fetch, socket, process: child, read, write } = probed;
    assert.doesNotMatch(environment ?? '', /PATH|TEMPER/);
    assert.equal(home, 'works');
    for (const refused of [fetch, socket, child, read, write]) assert.notEqual(refused, 'works');
    const { undici } = JSON.parse((await pod.send('!clients')).reply) as Record<string, unknown[]>;
    assert.match(JSON.stringify(undici), /^\[400,.*the body is not a JSON object/, 'of a body of 1,000,000 characters');
    const long = 'é𝕏'.repeat(300_000);
    assert.equal((await pod.send(`${long}\n!echo`)).reply.split('\n').at(-2), long);
  });

  it('a program that says too much is killed, and one whose sandbox container ends fails by name', async () => {
    await using pod = await aPod();
    await assert.rejects(pod.send('!flood'), (error) => isTemperError(error, 'TEMPER_ACP_AGENT_FAILED'));
    assert.deepEqual(await pod.homes(), []);
    const hanging = assert.rejects(
      pod.send('!hang'),
      (error) => isTemperError(error, 'TEMPER_ACP_AGENT_FAILED') && /connection to the sandbox/.test(error.message),
    );
    await pollAssertion('a process', async () => assert.equal((await pod.homes()).length, 1));
    await pod.role.end('SIGKILL');
    await hanging;
    await pod.start();
    assert.deepEqual(await pod.homes(), [], 'the next container removes what the last one left');
    assert.equal((await pod.send('!prompts')).reply, 'prompt 1');
  });

  it('a pod works on as many messages as its program has processes', () => {
    assert.equal(slotsOf({ model: MODEL, limits: { concurrency: 16 } }), 4);
    assert.equal(slotsOf({ model: MODEL, limits: { concurrency: 2 } }), 2);
    assert.equal(slotsOf({ model: { primary: 'a/b' }, limits: { concurrency: 16 } }), 16);
  });
});
