import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { inputHistory } from './input-history.ts';

describe('the inputs at the prompt', () => {
  let state: string;
  beforeEach(async () => {
    state = await mkdtemp(join(tmpdir(), 'temper-history-'));
  });
  afterEach(() => rm(state, { recursive: true, force: true }));

  it('the inputs are kept for the next run, and only their owner may read them', async () => {
    const history = inputHistory(state);
    assert.deepEqual(history.load(), []);
    history.save(['second line\n\tindented', 'Zürich 東京 👩‍🚀']);
    assert.deepEqual(inputHistory(state).load(), ['second line\n\tindented', 'Zürich 東京 👩‍🚀']);
    assert.equal((await stat(join(state, 'input-history.json'))).mode & 0o777, 0o600);
  });

  it('an input with control characters is not shown again, and a damaged file starts a new history', async () => {
    const planted = ['fine', 'x\u001b]52;c;eA==\u0007', '\u009b2J', 'a\rb', '\u007f', 7, null];
    await writeFile(join(state, 'input-history.json'), JSON.stringify(planted));
    assert.deepEqual(inputHistory(state).load(), ['fine']);
    await writeFile(join(state, 'input-history.json'), '{');
    assert.deepEqual(inputHistory(state).load(), []);
  });
});
