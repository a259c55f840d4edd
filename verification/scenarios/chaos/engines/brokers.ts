import { eventually } from '#platform/waiting.ts';
import { fetchJson } from './fetch-json.ts';
import { BROKER_USER, brokerNode, PORTS } from './configuration.ts';
import { addressOf, type Machine, machineOf, MACHINES, HOST_ADDRESS } from './namespaces.ts';

interface Queue {
  readonly name: string;
  readonly vhost: string;
  readonly type: string;
  readonly leader?: string;
  readonly online?: string[];
}

/** Time for quorum queues to recover their members on a restarted node. */
const MEMBERS_TIMEOUT_MS = 20_000;

/** The RabbitMQ nodes of the machines, through their management API. */
export class Brokers {
  readonly #password: string;

  constructor(password: string) {
    this.#password = password;
  }

  /** Returns the machine whose RabbitMQ node leads most queues. */
  async leader(): Promise<Machine> {
    const led = new Map<string, number>();
    for (const { leader = '' } of await this.#queues()) led.set(leader, (led.get(leader) ?? 0) + 1);
    const [most] = [...led].filter(([node]) => node !== '').sort(([, one], [, other]) => other - one);
    return machineOf(MACHINES.find((machine) => brokerNode(machine) === most?.[0]));
  }

  /** @throws {Error} if a node does not see all others, or if a quorum queue lacks a member */
  async assertHealthy(): Promise<void> {
    for (const machine of MACHINES)
      if (!(await this.#seesAll(machine))) throw new Error(`RabbitMQ of m${machine} does not see all nodes`);
    const queue = (await this.#queues()).find(
      ({ type, online = [] }) => type === 'quorum' && online.length < MACHINES.length,
    );
    if (queue !== undefined)
      throw new Error(`queue ${queue.name} has members on ${queue.online?.join(', ')}`);
  }

  /**
   * Recreates members of quorum queues that did not recover with their node. An operator must do that when a
   * full disk has damaged their logs. Returns the number of members.
   */
  async recreateMembers(machine: Machine): Promise<number> {
    const node = brokerNode(machine);
    const without = async (): Promise<Queue[]> =>
      (await this.#queues()).filter(({ type, online = [] }) => type === 'quorum' && !online.includes(node));
    await eventually(
      async () => {
        if (!(await this.#seesAll(machine))) throw new Error('not all nodes are running');
        if ((await without()).length > 0) throw new Error('some queues lack a member');
      },
      { timeoutMs: MEMBERS_TIMEOUT_MS, intervalMs: 500 },
    ).catch(() => undefined);
    const queues = await without();
    for (const { vhost, name } of queues) {
      const replicas = `queues/quorum/${encodeURIComponent(vhost)}/${encodeURIComponent(name)}/replicas`;
      await this.#manage(`${replicas}/delete`, HOST_ADDRESS, 'DELETE', { node });
      // Refused with 503 until the other members have agreed on the removal.
      await eventually(() => this.#manage(`${replicas}/add`, HOST_ADDRESS, 'POST', { node }), {
        timeoutMs: MEMBERS_TIMEOUT_MS,
        intervalMs: 500,
      });
    }
    return queues.length;
  }

  async #seesAll(machine: Machine): Promise<boolean> {
    const nodes = await this.#manage<{ running: boolean }[]>('nodes', addressOf(machine));
    return nodes.filter(({ running }) => running).length === MACHINES.length;
  }

  #queues(): Promise<Queue[]> {
    return this.#manage('queues?disable_stats=true&enable_queue_totals=true', HOST_ADDRESS);
  }

  #manage<T>(path: string, host: string, method = 'GET', body?: object): Promise<T> {
    const authorization = `Basic ${Buffer.from(`${BROKER_USER}:${this.#password}`).toString('base64')}`;
    const url = `http://${host}:${PORTS.management}/api/${path}`;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return fetchJson<T>(url, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...sent,
    });
  }
}
