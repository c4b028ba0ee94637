import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { BridgeProcess } from './bridge-process.ts';

it('a process that does not answer its initialization within 30 seconds is killed', async () => {
  const clock = new FakeClock();
  const home = await ProgramHome.create();
  const silent = new PipedProcess(
    { command: process.execPath, args: ['--eval', 'process.stdin.resume()'] },
    { home, folder: home.workspace, environment: {}, closeReason: 'closed' },
  );
  await using bridged = await BridgeProcess.open(silent, clock);
  const { id, answer } = bridged.ask({ jsonrpc: '2.0', id: 'one', method: 'initialize', params: {} });
  bridged.forget(id);
  await clock.advance(29_999);
  assert.equal(bridged.ended, undefined);
  await clock.advance(1);
  assert.equal(bridged.ended, 'it does not answer that it is initialized');
  assert.equal(await answer, undefined);
});
