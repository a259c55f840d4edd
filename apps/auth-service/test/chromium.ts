import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { types } from 'node:util';
import { chromium } from 'playwright-core';
import type { BrowserContext, Page } from 'playwright-core';

const PICTURES = join(__dirname, '../../../test-results/browser');

/** Returns the path of the installed browser, or null if there is none. */
export function chromiumPath(): string | null {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser'], {
      encoding: 'utf8',
    }).trim();
  } catch (error) {
    // Under Jest the error is from another realm, so `instanceof Error` would be false.
    if (types.isNativeError(error) && 'status' in error) return null;
    throw error;
  }
}

/**
 * A headless Chromium with a profile of its own. When a walk fails, a screenshot of its page is stored in
 * `test-results/browser`.
 */
export class TestBrowser {
  private constructor(
    private readonly context: BrowserContext,
    private readonly profile: string,
  ) {}

  static async start(executablePath: string): Promise<TestBrowser> {
    const profile = await mkdtemp(join(tmpdir(), 'chromium-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      args: [
        // The sandbox does not work as root. The browser visits only pages of the test.
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-sync',
        '--disable-background-networking',
        '--disable-component-update',
      ],
    });
    return new TestBrowser(context, profile);
  }

  /** Runs the steps in a new page that shares the cookies of earlier pages. */
  async walk<T>(name: string, steps: (page: Page) => Promise<T>): Promise<T> {
    const page = await this.context.newPage();
    try {
      return await steps(page);
    } catch (error) {
      await mkdir(PICTURES, { recursive: true });
      await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
      throw error;
    } finally {
      await page.close();
    }
  }

  forgetCookies(): Promise<void> {
    return this.context.clearCookies();
  }

  async stop(): Promise<void> {
    await this.context.close();
    await rm(this.profile, { recursive: true, force: true });
  }
}
