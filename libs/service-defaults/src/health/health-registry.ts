import { Injectable } from '@nestjs/common';

/** A named condition: `check` resolves when it holds and rejects when it does not. */
export interface HealthCheck {
  name: string;
  check(): Promise<void>;
}

/** What this replica needs to be ready and to have started. Libraries add their checks when their module starts. */
@Injectable()
export class HealthRegistry {
  private readonly readiness: HealthCheck[] = [];
  private readonly startup: HealthCheck[] = [];
  private shuttingDown = false;

  /** A condition for taking traffic, asked on every probe of `/health/ready`. */
  addReadinessCheck(check: HealthCheck): void {
    this.readiness.push(check);
  }

  /** A condition that stays true once it was, e.g. "migrations are applied"; readiness needs it too. */
  addStartupCheck(check: HealthCheck): void {
    this.startup.push(check);
  }

  get readinessChecks(): readonly HealthCheck[] {
    return this.readiness;
  }

  get startupChecks(): readonly HealthCheck[] {
    return this.startup;
  }

  /** From now on this replica says "not ready", so that no new traffic is sent to it. */
  markShuttingDown(): void {
    this.shuttingDown = true;
  }

  get isShuttingDown(): boolean {
    return this.shuttingDown;
  }
}
