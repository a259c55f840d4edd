import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import {
  ContentionError,
  DatabaseUnavailableError,
  isConnectionError,
  isStatementTimeout,
} from '@platform/database';
import { HealthRegistry } from '@platform/service-defaults';
import { sleep } from '@platform/time';
import type { DataSource, EntityManager } from 'typeorm';
import type { RequestOutcome } from '../broker/bus-requester';
import { delaysOf, type EndpointHandler, responseOf } from '../consuming/endpoint';
import { MessageMetrics } from '../metrics/message-metrics';
import { Buses } from './buses';
import { type DiscoveredHandler, type EndpointPlan, handlersOf, planEndpoints } from './consume.decorator';
import { InboxRepository } from './inbox.repository';

const STARTUP_POLL_MS = 250;

/** Injection token of the data source whose connections the handlers share; null in a service without one. */
export const INBOX_DATA_SOURCE = Symbol('INBOX_DATA_SOURCE');

/**
 * Finds the methods marked with @Consume and @Respond, and consumes their queues once the startup checks
 * pass. Before the migrations are applied every message would fail.
 */
@Injectable()
export class ConsumerRegistrar implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('messaging');
  private readonly stopped = new AbortController();
  private planned: EndpointPlan[] = [];
  private messages: InboxRepository | null = null;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly buses: Buses,
    private readonly health: HealthRegistry,
    private readonly metrics: MessageMetrics,
    @Inject(INBOX_DATA_SOURCE) private readonly dataSource: DataSource | null,
  ) {}

  onApplicationBootstrap(): void {
    this.planned = planEndpoints(this.discover());
    if (this.planned.length === 0) return;
    if (this.dataSource === null) throw new Error('message handlers need a DataSource for their inbox');
    this.health.addReadinessCheck({ name: 'message-consumers', check: () => this.requireStarted() });
    const inbox = new InboxRepository(this.dataSource, ({ queue, messageName }) =>
      this.metrics.count('duplicate', { queue, message: messageName }),
    );
    this.metrics.watchWaiting(() => inbox.waiting);
    void this.start(inbox);
  }

  onApplicationShutdown(): void {
    this.stopped.abort();
  }

  /** The inbox of applied messages; null until the handlers consume, and in a service without handlers. */
  get inbox(): InboxRepository | null {
    return this.messages;
  }

  private async start(inbox: InboxRepository): Promise<void> {
    while (!(await this.hasStarted())) {
      if (this.stopped.signal.aborted) return;
      await sleep(STARTUP_POLL_MS);
    }
    if (this.stopped.signal.aborted || this.health.isShuttingDown) return;
    const plans = this.planned;
    this.planned = [];
    for (const { bus, options, handlers } of plans) {
      const messages = handlers.map(({ contract }) => contract.name);
      this.metrics.startQueue(options.queue, messages);
      const endpointHandlers = handlers.map((handler) => inboxHandler(handler, inbox));
      this.buses
        .get(bus)
        .consume({ ...options, handlers: endpointHandlers, isOutage, isTimeout: isStatementTimeout });
    }
    this.messages = inbox;
  }

  private async hasStarted(): Promise<boolean> {
    try {
      await Promise.all(this.health.startupChecks.map((check) => check.check()));
      return true;
    } catch (error) {
      this.logger.debug(`consumers wait for the service to start: ${String(error)}`);
      return false;
    }
  }

  private requireStarted(): Promise<void> {
    return this.planned.length > 0 ? Promise.reject(new Error('not started')) : Promise.resolve();
  }

  private discover(): DiscoveredHandler[] {
    return this.discovery.getProviders().flatMap(({ instance, isNotMetatype }) => {
      const provider: unknown = instance;
      if (isNotMetatype || typeof provider !== 'object' || provider === null) return [];
      const prototype = Object.getPrototypeOf(provider) as object | null;
      if (prototype === null) return [];
      return this.scanner.getAllMethodNames(prototype).flatMap((name) => {
        const method: unknown = (provider as Record<string, unknown>)[name];
        if (typeof method !== 'function') return [];
        const invoke = method.bind(provider) as DiscoveredHandler['invoke'];
        return handlersOf(method).map((metadata) => ({ ...metadata, invoke }));
      });
    });
  }
}

/**
 * Wraps a marked method so that it runs once per message and queue, in one transaction with the inbox row.
 */
function inboxHandler(
  { contract, request, options, invoke }: DiscoveredHandler,
  inbox: InboxRepository,
): EndpointHandler {
  return {
    contract,
    isRequest: request !== null,
    process: async (message, context) => {
      const { messageId, contentHash } = context;
      const key = { queue: options.queue, messageId, messageName: contract.name, contentHash };
      const work = async (transaction: EntityManager): Promise<string | null> => {
        const outcome = await invoke(message, { ...context, transaction });
        return request === null ? null : JSON.stringify(outcome);
      };
      const canReturn = delaysOf(options).length > 0;
      const { yieldsToOtherKeys = false } = options;
      const share = { isRequest: request !== null, key: keyOf(message), canReturn, yieldsToOtherKeys };
      const stored = await inbox.apply(key, options.isolation ?? 'READ COMMITTED', work, share);
      if (request === null || stored === null) return null;
      return responseOf(request, JSON.parse(stored) as RequestOutcome<unknown, unknown>);
    },
  };
}

/**
 * Returns the owner of the rows that the message's handler locks: a facility, or a business unit with its
 * facilities. Null for any other message.
 */
function keyOf(message: unknown): string | null {
  const { facilityId, businessUnitId } = message as { facilityId?: unknown; businessUnitId?: unknown };
  if (typeof facilityId === 'number') return `facility ${String(facilityId)}`;
  return typeof businessUnitId === 'number' ? `business unit ${String(businessUnitId)}` : null;
}

function isOutage(error: unknown): boolean {
  return (
    error instanceof DatabaseUnavailableError || error instanceof ContentionError || isConnectionError(error)
  );
}
