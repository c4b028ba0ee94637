import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayFixture, HttpResponse } from './gateway-fixture.ts';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts';

/** One gateway process at a time, which a test kills and replaces. */
export class KilledGateway implements AsyncDisposable {
  readonly #fixture: GatewayFixture;
  #running: GatewayProcess | undefined;

  constructor(fixture: GatewayFixture) {
    this.#fixture = fixture;
  }

  get current(): GatewayProcess {
    assert.ok(this.#running !== undefined, 'no gateway runs');
    return this.#running;
  }

  async kill(): Promise<void> {
    await this.#running?.end('SIGKILL');
    this.#running = undefined;
  }

  async replace(): Promise<void> {
    await this.kill();
    this.#running = await startGatewayProcess(this.#fixture);
  }

  /** Kills the gateway `milliseconds` after it got the request, and repeats the request at another one, as the client of a pod does. */
  async interrupted(send: () => Promise<HttpResponse>, milliseconds: number): Promise<HttpResponse> {
    const lost = send().catch(() => undefined);
    await sleep(milliseconds);
    await this.kill();
    await lost;
    await this.replace();
    return send();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running?.[Symbol.asyncDispose]();
  }
}
