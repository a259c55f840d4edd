import { hostname } from 'node:os';

const PROCESS = {
  machineName: hostname(),
  processId: process.pid,
  frameworkVersion: process.version,
  operatingSystemVersion: process.platform,
};

/** MassTransit's `host` section for a service in this process. */
export function hostInfo(service: string): Readonly<Record<string, unknown>> {
  return { ...PROCESS, processName: service, assembly: service };
}
