import { type KubernetesObject, type Workload, title, workloads } from '../kubernetes-object.ts';
import { matches } from './selectors.ts';

interface Budget {
  minAvailable?: number | string;
  maxUnavailable?: number | string;
  selector?: { matchLabels?: Record<string, string> };
}

interface Autoscaler {
  scaleTargetRef: { kind: string; name: string };
  minReplicas?: number;
  maxReplicas: number;
}

/** Whether every Deployment always has two replicas, and a rollout and a node's drain can nevertheless go on. */
export function availabilityProblems(objects: readonly KubernetesObject[]): string[] {
  const deployments = workloads(objects).filter(({ object }) => object.kind === 'Deployment');
  return deployments.flatMap((deployment) =>
    [...autoscalerProblems(deployment, objects), ...budgetProblems(deployment, objects)].map(
      (problem) => `${title(deployment.object)}: ${problem}`,
    ),
  );
}

function autoscalerProblems({ object }: Workload, objects: readonly KubernetesObject[]): string[] {
  const scalers = ofKind<Autoscaler>(objects, 'HorizontalPodAutoscaler').filter(
    ({ scaleTargetRef: { kind, name } }) => kind === object.kind && name === object.metadata.name,
  );
  const [scaler] = scalers;
  if (scaler === undefined || scalers.length > 1) return ['needs exactly one HorizontalPodAutoscaler'];
  if ((scaler.minReplicas ?? 1) < 2) return ['minReplicas must be at least 2'];
  return scaler.maxReplicas > (scaler.minReplicas ?? 1) ? [] : ['maxReplicas must leave room to scale'];
}

function budgetProblems({ labels }: Workload, objects: readonly KubernetesObject[]): string[] {
  const budgets = ofKind<Budget>(objects, 'PodDisruptionBudget').filter(({ selector }) =>
    matches(selector?.matchLabels, labels),
  );
  const [budget] = budgets;
  if (budget === undefined || budgets.length > 1) return ['needs exactly one PodDisruptionBudget'];
  // Of two replicas one must be allowed to go, and one must stay.
  const allowsOne = budget.maxUnavailable === 1 || budget.minAvailable === 1;
  return allowsOne ? [] : ['the budget must let one of two replicas go'];
}

function ofKind<T>(objects: readonly KubernetesObject[], kind: string): T[] {
  return objects.filter((object) => object.kind === kind).map(({ spec }) => spec as T);
}
