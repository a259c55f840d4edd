import type { KubernetesObject } from '../kubernetes-object.ts';
import { availabilityProblems } from './availability.ts';
import { networkPolicyProblems } from './network-policies.ts';
import { podSecurityProblems } from './pod-security.ts';
import { referenceProblems } from './references.ts';
import { routeProblems } from './routes.ts';
import { secretProblems } from './secrets.ts';
import { settingProblems } from './settings.ts';
import { workloadProblems } from './workload-rules.ts';

const CHECKS = [
  podSecurityProblems,
  workloadProblems,
  availabilityProblems,
  referenceProblems,
  routeProblems,
  networkPolicyProblems,
  secretProblems,
  settingProblems,
];

/** Everything but the schemas and the applications' own configuration: see each check. */
export function policyProblems(objects: readonly KubernetesObject[]): string[] {
  return CHECKS.flatMap((check) => check(objects));
}
