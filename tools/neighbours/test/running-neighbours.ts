import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestBroker } from '@platform/testing';
import type { TestBroker } from '@platform/testing';
import {
  completionReceiverConfig,
  createCompletionReceiver,
} from '../src/completions/completion-receiver.neighbour';
import { createCustomers, customersConfig } from '../src/customers/customers.neighbour';
import type { Neighbour } from '../src/neighbour/neighbour';
import { createScheduling, schedulingConfig } from '../src/scheduling/scheduling.neighbour';

/** A ledger's entry as the routes return it. */
export interface Entry {
  id: string;
  record: unknown;
}

/** Name of a message type's exchange. */
export function exchange(name: string): string {
  return `Platform.Contracts:${name}`;
}

/** Neighbours in this process, with their own virtual host and state folder. */
export class RunningNeighbours {
  private readonly running: Neighbour[] = [];

  private constructor(
    readonly broker: TestBroker,
    readonly folder: string,
  ) {}

  static async open(): Promise<RunningNeighbours> {
    return new RunningNeighbours(await createTestBroker(), await mkdtemp(join(tmpdir(), 'neighbours-')));
  }

  async customers(): Promise<Neighbour> {
    return this.track(await createCustomers(customersConfig.parse(this.variables)));
  }

  async scheduling(): Promise<Neighbour> {
    return this.track(await createScheduling(schedulingConfig.parse(this.variables)));
  }

  async receiver(): Promise<Neighbour> {
    return this.track(await createCompletionReceiver(completionReceiverConfig.parse(this.variables)));
  }

  async stop(neighbour: Neighbour): Promise<void> {
    this.running.splice(this.running.indexOf(neighbour), 1);
    neighbour.markStopping();
    await neighbour.server.close();
    await neighbour.release();
  }

  async close(): Promise<void> {
    for (const neighbour of [...this.running]) await this.stop(neighbour);
    await this.broker.drop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Returns the body of a response, which must be successful. */
  async get<T = unknown>(neighbour: Neighbour, url: string): Promise<T> {
    const response = await neighbour.server.inject({ url, headers: { authorization: 'Bearer any' } });
    expect(response.statusCode).toBe(200);
    return response.json<T>();
  }

  /** Publishes raw JSON, like a client that does not use the envelope. */
  publish(name: string, message: object, messageId: string): Promise<boolean> {
    return this.broker.management.publish(exchange(name), {
      body: JSON.stringify(message),
      properties: { content_type: 'application/json', message_id: messageId },
    });
  }

  private get variables(): Record<string, string> {
    return {
      LOG_LEVEL: 'silent',
      RABBITMQ_MAIN_URL: this.broker.url,
      RABBITMQ_SCHEDULING_URL: this.broker.url,
      STATE_DIRECTORY: this.folder,
    };
  }

  private track(neighbour: Neighbour): Neighbour {
    this.running.push(neighbour);
    return neighbour;
  }
}
