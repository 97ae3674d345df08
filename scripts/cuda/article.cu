// The kernel of NVIDIA's article with its five strategies, by hand as in the article: double precision, a block for each SM.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_pipeline_primitives.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR %s line %d: %s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
#ifndef BD
#define BD 128
#endif
template<int W> __device__ __forceinline__ double work(double a,double x){
#pragma unroll
 for(int k=0;k<W;k++) a+=exp(-x*x)*(x+k); return a;}
#define PRE const double*arr=g+(long)blockIdx.x*imax; int t=threadIdx.x; double acc=0;
#define POST res[blockIdx.x*BD+t]=acc;
template<int W> __global__ __launch_bounds__(BD) void base(const double*g,double*res,int imax){PRE
#pragma unroll 1
 for(int i=t;i<imax;i+=BD){ acc=work<W>(acc,arr[i]); } POST}
template<int W,int P> __global__ __launch_bounds__(BD) void unrolled(const double*g,double*res,int imax){PRE
#pragma unroll P
 for(int i=t;i<imax;i+=BD){ acc=work<W>(acc,arr[i]); } POST}
template<int W,int P> __global__ __launch_bounds__(BD) void regbatch(const double*g,double*res,int imax){PRE double v[P];
#pragma unroll 1
 for(int i=t;i<imax;i+=BD*P){
#pragma unroll
  for(int k=0;k<P;k++) v[k]= i+k*BD<imax? arr[i+k*BD]:0;
#pragma unroll
  for(int k=0;k<P;k++) if(i+k*BD<imax) acc=work<W>(acc,v[k]); } POST}
// as in the article: counter + switch
template<int W,int P> __global__ __launch_bounds__(BD) void regbatch_switch(const double*g,double*res,int imax){PRE double v[P]; int ctr=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD,ctr++){ int m=ctr%P; if(m==0){
#pragma unroll
   for(int k=0;k<P;k++) v[k]= i+k*BD<imax? arr[i+k*BD]:0; }
  double x=v[0];
#pragma unroll
  for(int k=1;k<P;k++) if(m==k) x=v[k]; acc=work<W>(acc,x);} POST}
template<int W,int P> __global__ __launch_bounds__(BD) void regroll(const double*g,double*res,int imax){PRE double v[P];
#pragma unroll
 for(int k=0;k<P;k++) v[k]= t+k*BD<imax? arr[t+k*BD]:0;
#pragma unroll 1
 for(int i=t;i<imax;){
#pragma unroll
  for(int k=0;k<P;k++){ if(i>=imax) break; double x=v[k]; int n=i+P*BD; if(n<imax) v[k]=arr[n]; acc=work<W>(acc,x); i+=BD; } } POST}
template<int W,int P,int PAD> __global__ __launch_bounds__(BD) void smbatch(const double*g,double*res,int imax){PRE __shared__ double v[(P+PAD)*BD];
#define V(k) v[(k)+(P+PAD)*t]
 int ctr=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD,ctr++){ int m=ctr%P; if(m==0){ for(int k=0;k<P;k++) if(i+k*BD<imax) V(k)=arr[i+k*BD]; } acc=work<W>(acc,V(m)); } POST}
template<int W,int P,int PAD> __global__ __launch_bounds__(BD) void smroll(const double*g,double*res,int imax){PRE __shared__ double v[(P+PAD)*BD];
 for(int k=0;k<P;k++) if(t+k*BD<imax) V(k)=arr[t+k*BD]; int ctr=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD,ctr++){ int m=ctr%P; double x=V(m); if(i+P*BD<imax) V(m)=arr[i+P*BD]; acc=work<W>(acc,x);} POST}
template<int W,int P,int PAD> __global__ __launch_bounds__(BD) void smasync(const double*g,double*res,int imax){PRE __shared__ double v[(P+PAD)*BD];
 for(int k=0;k<P;k++){ if(t+k*BD<imax) __pipeline_memcpy_async(&V(k),&arr[t+k*BD],8); __pipeline_commit(); } int ctr=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD,ctr++){ __pipeline_wait_prior(P-1); int m=ctr%P; double x=V(m); if(i+P*BD<imax) __pipeline_memcpy_async(&V(m),&arr[i+P*BD],8); __pipeline_commit(); acc=work<W>(acc,x);} POST}
// transposed layout: no bank conflict, "left as an exercise"
template<int W,int P> __global__ __launch_bounds__(BD) void smasyncT(const double*g,double*res,int imax){PRE __shared__ double v[P*BD];
#define T(k) v[(k)*BD+t]
 for(int k=0;k<P;k++){ if(t+k*BD<imax) __pipeline_memcpy_async(&T(k),&arr[t+k*BD],8); __pipeline_commit(); } int m=0;
#pragma unroll 1
 for(int i=t;i<imax;i+=BD){ __pipeline_wait_prior(P-1); double x=T(m); if(i+P*BD<imax) __pipeline_memcpy_async(&T(m),&arr[i+P*BD],8); __pipeline_commit(); if(++m==P)m=0; acc=work<W>(acc,x);} POST}
template<class F> float tm(F f){ cudaEvent_t a,b; cudaEventCreate(&a);cudaEventCreate(&b); f(); CK(cudaDeviceSynchronize()); std::vector<float> t; for(int r=0;r<7;r++){cudaEventRecord(a); f(); cudaEventRecord(b); CK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms,a,b); t.push_back(ms);} std::sort(t.begin(),t.end()); CK(cudaGetLastError()); return t[3];}
double*g,*res; int nb,imax; float tb; std::vector<double> ref,o;
void rep(const char*n,int P,float t){ CK(cudaMemcpy(o.data(),res,o.size()*8,cudaMemcpyDeviceToHost)); int bad=0; for(size_t i=0;i<o.size();i++) if(o[i]!=ref[i]) bad++; printf("%-16s P=%2d %8.3f ms x%.2f %s\n",n,P,t,tb/t,bad?"MISMATCH":""); CK(cudaMemset(res,0,o.size()*8)); }
constexpr int pad(int P){ int q=1; while(q<P) q*=2; return q+1-P; }
template<int W,int P> void at(){
 rep("unroll",P,tm([&]{unrolled<W,P><<<nb,BD>>>(g,res,imax);}));
 rep("scalar batched",P,tm([&]{regbatch<W,P><<<nb,BD>>>(g,res,imax);}));
 rep("scalar b.switch",P,tm([&]{regbatch_switch<W,P><<<nb,BD>>>(g,res,imax);}));
 rep("scalar rolling",P,tm([&]{regroll<W,P><<<nb,BD>>>(g,res,imax);}));
 rep("smem batched",P,tm([&]{smbatch<W,P,0><<<nb,BD>>>(g,res,imax);}));
 rep("smem rolling",P,tm([&]{smroll<W,P,0><<<nb,BD>>>(g,res,imax);}));
 rep("smem async",P,tm([&]{smasync<W,P,0><<<nb,BD>>>(g,res,imax);}));
 rep("smem async pad",P,tm([&]{smasync<W,P,pad(P)><<<nb,BD>>>(g,res,imax);}));
 rep("smem async T",P,tm([&]{smasyncT<W,P><<<nb,BD>>>(g,res,imax);}));
}
template<int W> void suite(int nb_,int imax_){ nb=nb_; imax=imax_; printf("== blog W=%d blocks=%d bs=%d imax=%d\n",W,nb,BD,imax); ref.resize(nb*BD); o.resize(nb*BD);
 tb=tm([&]{base<W><<<nb,BD>>>(g,res,imax);}); CK(cudaMemcpy(ref.data(),res,ref.size()*8,cudaMemcpyDeviceToHost)); double by=(double)nb*imax*8; printf("base %8.3f ms %.0f GB/s\n",tb,by/tb/1e6);
 at<W,2>(); at<W,4>(); at<W,6>(); at<W,8>(); at<W,12>(); }
__global__ void mk(double*p,long n){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x) p[i]=(i*2654435761u>>8&0xffff)/65536.; }
int main(){ long n=132l*400000; CK(cudaMalloc(&g,n*8)); CK(cudaMalloc(&res,1<<24)); mk<<<1024,256>>>(g,n); CK(cudaDeviceSynchronize());
 suite<1>(132,400000); suite<4>(132,400000); suite<1>(1,400000); }
