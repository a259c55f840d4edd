import type { TestPlatform } from '#platform/test-platform.ts';
import { HttpLoad } from '../load.ts';
import { headersOf, SETTINGS } from './operations.ts';

const CHANGES = '/platform/v1/changes';
const WAIT_SECONDS = 20;

/** Clients that long-poll for changes of all settings. Each polls again after a response. */
export class Watchers {
  readonly #platform: TestPlatform;
  readonly #load: HttpLoad;
  readonly #waiting: Promise<void>[];
  #isOver = false;
  /** Number of responses so far. */
  responses = 0;

  constructor(platform: TestPlatform, count: number) {
    this.#platform = platform;
    this.#load = new HttpLoad(platform.url('settings'), count);
    this.#waiting = Array.from({ length: count }, () => this.#wait());
  }

  /**
   * Ends the watchers. Writes a change, so that all pending polls get a response.
   * @throws the error of a failed watcher
   */
  async end(): Promise<void> {
    this.#isOver = true;
    const writer = new HttpLoad(this.#platform.url('settings'), 1);
    const body = JSON.stringify({ settingValue: 'the watchers end' });
    const headers = headersOf(this.#platform);
    await writer.send({ method: 'PUT', path: `${SETTINGS}/Watched`, headers, body, expect: 200 });
    await Promise.all(this.#waiting);
    await writer.close();
    await this.#load.close();
  }

  async #wait(): Promise<void> {
    const headers = headersOf(this.#platform);
    for (let path = CHANGES; !this.#isOver;) {
      const body = await this.#load.send({ method: 'GET', path, headers, expect: 200 });
      const { next } = JSON.parse(body) as { next: string };
      path = `${CHANGES}?after=${encodeURIComponent(next)}&waitSeconds=${WAIT_SECONDS}`;
      this.responses += 1;
    }
  }
}
