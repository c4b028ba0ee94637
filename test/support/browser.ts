import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

const PROGRAM = 'chromium';
/** Separates the messages of the DevTools protocol in a pipe. */
const END = '\0';

interface ProtocolMessage {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { message: string };
}

/** A page of Chromium without a window, by the DevTools protocol over a pipe. It resolves no name. */
export class BrowserPage implements AsyncDisposable {
  /** URLs that the page asked for, and what it logged, such as violations of its content security policy. */
  readonly requests: string[] = [];
  readonly logged: string[] = [];
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<number, (message: ProtocolMessage) => void>();
  readonly #listeners = new Map<string, () => void>();
  #session: string | undefined;
  #lastId = 0;
  #rest = '';

  private constructor(process: ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    const [, , , , output] = process.stdio as unknown as Readable[];
    output?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    process.once('exit', () => {
      for (const answer of this.#waiting.values()) answer({ error: { message: `${PROGRAM} ended` } });
    });
  }

  static async open({ width, height }: { width: number; height: number }): Promise<BrowserPage> {
    const folder = await mkdtemp(join(tmpdir(), 'temper-browser-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
    const own = ['--remote-debugging-pipe', `--user-data-dir=${folder}`, `--window-size=${width},${height}`];
    const noNetwork = ['--host-resolver-rules=MAP * ~NOTFOUND', '--disable-background-networking'];
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    const child = spawn(PROGRAM, [...flags, ...own, ...noNetwork, 'about:blank'], { stdio: [...stdio] });
    await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
    await using opening = new AsyncDisposableStack();
    const page = opening.use(new BrowserPage(child, folder));
    const { targetId } = await page.#send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await page.#send('Target.attachToTarget', { targetId, flatten: true });
    page.#session = sessionId as string;
    for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await page.#send(`${domain}.enable`);
    opening.move();
    return page;
  }

  /** Resolves when the page has loaded. */
  async navigate(url: string): Promise<void> {
    const loaded = new Promise<void>((resolve) => this.#listeners.set('Page.loadEventFired', resolve));
    await this.#send('Page.navigate', { url });
    await loaded;
  }

  /** The value of an expression in the page, which must be JSON. Runs although the page permits no script. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate', { expression, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(`the page: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value?: unknown }).value;
  }

  /** A PNG image of the whole page. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.#send('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(data as string, 'base64');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  #send(method: string, params: object = {}): Promise<Record<string, unknown>> {
    this.#lastId += 1;
    const id = this.#lastId;
    const sessionId = this.#session === undefined ? {} : { sessionId: this.#session };
    const [, , , input] = this.#process.stdio as unknown as Writable[];
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ error, result = {} }) =>
        error === undefined ? resolve(result) : reject(new Error(`${method}: ${error.message}`)),
      );
      input?.write(JSON.stringify({ id, method, params, ...sessionId }) + END);
    });
  }

  #read(chunk: string): void {
    const messages = (this.#rest + chunk).split(END);
    this.#rest = messages.pop() ?? '';
    for (const text of messages) this.#receive(JSON.parse(text) as ProtocolMessage);
  }

  #receive(message: ProtocolMessage): void {
    const { id, method = '', params = {} } = message;
    if (id !== undefined) {
      this.#waiting.get(id)?.(message);
      this.#waiting.delete(id);
      return;
    }
    if (method === 'Network.requestWillBeSent') this.requests.push((params['request'] as { url: string }).url);
    if (method === 'Log.entryAdded') this.logged.push((params['entry'] as { text: string }).text);
    if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') {
      this.logged.push(JSON.stringify(params));
    }
    this.#listeners.get(method)?.();
  }
}
