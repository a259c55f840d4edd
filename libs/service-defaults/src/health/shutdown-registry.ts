import { Injectable } from '@nestjs/common';

/** Something to finish before the service stops accepting requests, e.g. stop consuming and settle messages in flight. */
export interface DrainHook {
  name: string;
  drain(): Promise<void>;
}

/** The drain hooks of this process, run together after the grace period and before HTTP closes. */
@Injectable()
export class ShutdownRegistry {
  private readonly hooks: DrainHook[] = [];

  addDrainHook(hook: DrainHook): void {
    this.hooks.push(hook);
  }

  get drainHooks(): readonly DrainHook[] {
    return this.hooks;
  }
}
