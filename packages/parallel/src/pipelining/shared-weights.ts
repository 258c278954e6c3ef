/** Finds stages of one worker that share weights: they get one `GradientOrder`, or are refused if one of them is a DistributedDataParallel. */
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import type { PipelineStage } from './stage.js'

/** The stages in groups, each of which shares no weight with another. */
export function groupedByWeights(stages: Iterable<PipelineStage>): readonly (readonly PipelineStage[])[] {
  let groups: { readonly stages: readonly PipelineStage[]; readonly weights: ReadonlySet<Tensor> }[] = []
  for (const stage of stages) {
    const weights = stage.module.parameters().filter(({ requiresGrad }) => requiresGrad)
    const [sharing, others] = [new Set(groups.filter((group) => weights.some((weight) => group.weights.has(weight)))), groups]
    groups = others.filter((group) => !sharing.has(group))
    groups.push({
      stages: [...[...sharing].flatMap((group) => group.stages), stage],
      weights: new Set([...[...sharing].flatMap((group) => [...group.weights]), ...weights]),
    })
  }
  return groups.map((group) => group.stages)
}

/** Another stage's backward must not add to a mean over replicas in `.grad`. @throws INVALID_ARGUMENT */
export function checkReplicasApart(stages: readonly PipelineStage[]): void {
  const stageOf = new Map<Tensor, PipelineStage>()
  for (const stage of stages) {
    for (const [name, parameter] of stage.module.namedParameters()) {
      const other = stageOf.get(parameter)
      if (other !== undefined && (other.isReplica || stage.isReplica))
        throw invalidArgument(
          'Pipeline',
          'stages that share no parameter, where one of them is a DistributedDataParallel',
          `'${name}' in stages ${other.index} and ${stage.index}`,
          'Give them a copy each, or put both parts in one stage.',
        )
      if (other === undefined) stageOf.set(parameter, stage)
    }
  }
}
