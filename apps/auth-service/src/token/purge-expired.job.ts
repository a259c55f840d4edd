import { Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { MINUTE_MS } from '@platform/time';
import type { DataSource } from 'typeorm';

const INTERVAL_MS = MINUTE_MS;

/** Rows that can no longer decide anything. Every statement is safe to run on all replicas at once. */
const PURGES = [
  // A signature older than 300 s is refused by its timestamp; a minute more covers clocks that differ.
  `DELETE FROM auth.trust_replay WHERE seen_at < now() - interval '360 seconds'`,
  // Good for 300 s of clock skew on either side; a minute more as above.
  `DELETE FROM auth.windows_ticket WHERE seen_at < now() - interval '660 seconds'`,
  `DELETE FROM auth.password_lockout
   WHERE last_failure_at < now() - interval '1 day' AND (locked_until IS NULL OR locked_until < now())`,
  `DELETE FROM auth.openid_sign_in WHERE expires_at < now()`,
  // A day after expiry, so that a token is still known while any clock could accept it.
  `DELETE FROM auth.refresh_token WHERE expires_at < now() - interval '1 day'`,
  `DELETE FROM auth.refresh_family f
   WHERE f.created_at < now() - interval '366 days'
     AND NOT EXISTS (SELECT 1 FROM auth.refresh_token t WHERE t.family_id = f.family_id)`,
  // No token lives longer than 365 days.
  `DELETE FROM auth.revocation WHERE domain = 'jti' AND revocation_date < now() - interval '366 days'`,
] as const;

/** Keeps the tables from growing for ever. */
@Injectable()
export class PurgeExpiredJob implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer: NodeJS.Timeout | null = null;
  private running: Promise<void> = Promise.resolve();
  private readonly logger = new Logger(PurgeExpiredJob.name);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.running = this.running.then(() => this.runQuietly());
    }, INTERVAL_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer);
    await this.running;
  }

  async run(): Promise<void> {
    for (const purge of PURGES) await this.dataSource.query(purge);
  }

  /** A purge that fails is made up for by the next one. */
  private async runQuietly(): Promise<void> {
    try {
      await this.run();
    } catch (error) {
      this.logger.warn('expired rows could not be purged', { err: error });
    }
  }
}
