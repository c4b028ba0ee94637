import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { BenchRow } from './row.ts';

const ROOT = resolve(import.meta.dirname, '..');
const ROUNDS = 7;
/** A word with the space after it: words are printed whole. */
const TOKEN = 'Hello ';
const GOAL_MS = 50;

/** The time from the first token that a provider sends to the output of `temper run`, which keeps running meanwhile. */
export async function benchFirstToken(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-token-'));
  const sentAt: number[] = [];
  const server = createServer((request, response) => {
    request.resume().on('end', () => void sendAnswer(response, sentAt));
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await writeFile(join(folder, 'providers.json'), JSON.stringify(providers(port)));
    const printedAt = await printTimes(folder);
    const delays = printedAt.map((time, round) => time - (sentAt[round] ?? Number.NaN)).sort((a, b) => a - b);
    const [p50 = Number.NaN, max = Number.NaN] = [delays[Math.floor(delays.length / 2)], delays.at(-1)];
    const figures = {
      p50: `${p50.toFixed(1)} ms`,
      max: `${max.toFixed(1)} ms`,
      goal: `${GOAL_MS} ms`,
      'first tokens': `${delays.length} of ${ROUNDS}`,
    };
    const met = delays.length === ROUNDS && sentAt.length === ROUNDS;
    return [{ name: 'first token, from the provider to the output', figures, limit: 'each answer has its own', met }];
  } finally {
    server.close();
    server.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  }
}

function providers(port: number): object {
  return {
    providers: [{ name: 'local', type: 'openai-compatible', baseUrl: `http://127.0.0.1:${port}/v1` }],
    aliases: Object.fromEntries(
      ['default', 'judge', 'safety', 'correctness'].map((name) => [`default/${name}`, `local/${name}`]),
    ),
  };
}

/** Sends one token, and the end of the answer after a pause, so that the token cannot arrive together with the end. */
async function sendAnswer(response: ServerResponse, sentAt: number[]): Promise<void> {
  const event = (data: object): string =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', ...data })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  sentAt.push(performance.now());
  response.write(event({ choices: [{ index: 0, delta: { role: 'assistant', content: TOKEN } }] }));
  await new Promise((done) => setTimeout(done, 4 * GOAL_MS));
  response.write(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }));
  response.write(event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
  response.end('data: [DONE]\n\n');
}

/** Sends one message per round, each after the answer to the previous one, and returns when the first text of each answer was printed. */
async function printTimes(folder: string): Promise<number[]> {
  const quickstart = join(ROOT, 'manifests/quickstart');
  const words = ['run', '-f', quickstart, '--providers', 'providers.json', '--workspace', folder, '-o', 'json'];
  const child = spawn(join(ROOT, 'bin/temper'), words, { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  const printedAt: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const isAnswered = await readAnswer(child, round, printedAt);
    if (!isAnswered) break;
  }
  child.stdin.end();
  await ended;
  return printedAt;
}

/** False when the program ended before the answer. */
function readAnswer(child: ChildProcess, round: number, printedAt: number[]): Promise<boolean> {
  return new Promise((done) => {
    let text = '';
    const read = (chunk: Buffer): void => {
      const now = performance.now();
      text += chunk.toString('utf8');
      if (printedAt.length === round && text.includes('"delta":true')) printedAt.push(now);
      if (text.includes('"type":"session-end"')) finish(printedAt.length === round + 1);
    };
    const close = (): void => finish(false);
    const finish = (isAnswered: boolean): void => {
      child.stdout?.off('data', read);
      child.off('close', close);
      done(isAnswered);
    };
    child.stdout?.on('data', read);
    child.once('close', close);
    child.stdin?.write('hello\n');
  });
}
